import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Address, createWalletClient, type Hex, http, parseAbi, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { hardhat } from 'viem/chains'

const CONTRACTS = join(import.meta.dirname, '../contracts')

const abi = parseAbi([
  'constructor(address holder, uint256 supply)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function transferFrom(address from, address to, uint256 amount)',
  'function balanceOf(address account) view returns (uint256)',
])

/** A stranger with ether on a local chain, and a token of which `holder` has all. The stranger pays for its own calls. */
export async function deployToken(
  { chainUrl, fund }: { chainUrl: string; fund: (address: Address) => Promise<unknown> },
  holder: Address,
) {
  const account = privateKeyToAccount(generatePrivateKey())
  const stranger = createWalletClient({ account, chain: hardhat, transport: http(chainUrl) }).extend(publicActions)
  await fund(account.address)
  const bytecode = await compileToken()
  const hash = await stranger.deployContract({ abi, bytecode, args: [holder, 1000n] })
  const { contractAddress } = await stranger.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  if (!contractAddress) throw new Error('the token was not deployed')
  return { stranger, token: { address: contractAddress, abi } }
}

type Compiled = { contracts?: Record<string, { PermitToken: { evm: { bytecode: { object: string } } } }> }

async function compileToken(): Promise<Hex> {
  const solc = createRequire(join(CONTRACTS, 'package.json'))('solc') as { compile(input: string): string }
  const content = await readFile(join(CONTRACTS, 'test/PermitToken.sol'), 'utf8')
  const input = {
    language: 'Solidity',
    sources: { 'PermitToken.sol': { content } },
    settings: { outputSelection: { '*': { '*': ['evm.bytecode.object'] } } },
  }
  const { contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Compiled
  const object = contracts?.['PermitToken.sol']?.PermitToken.evm.bytecode.object
  if (!object) throw new Error('PermitToken.sol does not compile')
  return `0x${object}`
}
