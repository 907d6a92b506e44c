import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Hex } from 'viem'

type Compiled = { contracts?: Record<string, Record<string, { evm: { bytecode: { object: string } } }>> }

/** Returns the deployment code of a contract in `test/`. The source file has the contract's name. */
export async function compileTestContract(name: string): Promise<Hex> {
  const solc = createRequire(import.meta.url)('solc') as { compile(input: string): string }
  const file = `${name}.sol`
  const content = await readFile(join(import.meta.dirname, 'test', file), 'utf8')
  const input = {
    language: 'Solidity',
    sources: { [file]: { content } },
    settings: {
      optimizer: { enabled: true },
      evmVersion: 'cancun',
      // Otherwise every comment would change the metadata hash.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
    },
  }
  const { contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Compiled
  const object = contracts?.[file]?.[name]?.evm.bytecode.object
  if (!object) throw new Error(`${file} does not compile`)
  return `0x${object}`
}
