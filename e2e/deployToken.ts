import { type Address, createWalletClient, http, parseAbi, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { hardhat } from 'viem/chains'
import { compileTestContract } from '../contracts/compileTestContract.ts'

const abi = parseAbi([
  'constructor(address holder, uint256 supply)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function transferFrom(address from, address to, uint256 amount)',
  'function balanceOf(address account) view returns (uint256)',
])

/** Creates another account with ether on a local chain, and a token whose supply belongs to `holder`. The account pays for its own calls. */
export async function deployToken(
  { chainUrl, fund }: { chainUrl: string; fund: (address: Address) => Promise<unknown> },
  holder: Address,
) {
  const account = privateKeyToAccount(generatePrivateKey())
  const stranger = createWalletClient({ account, chain: hardhat, transport: http(chainUrl) }).extend(publicActions)
  await fund(account.address)
  const bytecode = await compileTestContract('PermitToken')
  const hash = await stranger.deployContract({ abi, bytecode, args: [holder, 1000n] })
  const { contractAddress } = await stranger.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  if (!contractAddress) throw new Error('the token was not deployed')
  return { stranger, token: { address: contractAddress, abi } }
}
