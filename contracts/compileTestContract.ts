import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Hex } from 'viem'

type Compiled = { contracts?: Record<string, Record<string, { evm: { bytecode: { object: string } } }>> }

/** What a deployment of a contract in `test/` sends. Its source bears its name. */
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
      // The hash of its metadata would change with each comment.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
    },
  }
  const { contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Compiled
  const object = contracts?.[file]?.[name]?.evm.bytecode.object
  if (!object) throw new Error(`${file} does not compile`)
  return `0x${object}`
}
