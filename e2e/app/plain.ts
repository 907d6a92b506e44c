import { type Hex, ServiceClient } from '@countersign/sdk/client'
import { toServiceAccount } from '@countersign/sdk/viem'
import { createWalletClient, http, parseEther } from 'viem'
import { config } from './config.ts'

const client = new ServiceClient(config)

/** Sends with viem. The service only signs. */
async function sendWithViem({ to, ether }: { to: Hex; ether: string }) {
  const wallet = await client.api.getWallet()
  if (wallet === null) throw new Error('no wallet')
  const slugs: string[] = []
  const account = toServiceAccount(client, wallet, { onSigned: ({ slug }) => slugs.push(slug) })
  const walletClient = createWalletClient({ account, transport: http(config.rpcUrl) })
  const txHash = await walletClient.sendTransaction({ chain: client.publicClient.chain, to, value: parseEther(ether) })
  return { txHash, slugs }
}

/** Lets viem's account authorize the code at `address` for the wallet, from nonce `nonce`. */
async function authorizeWithViem({ address, nonce }: { address: Hex; nonce: number }) {
  const wallet = await client.api.getWallet()
  if (wallet === null) throw new Error('no wallet')
  const slugs: string[] = []
  const account = toServiceAccount(client, wallet, { onSigned: ({ slug }) => slugs.push(slug) })
  const walletClient = createWalletClient({ account, transport: http(config.rpcUrl) })
  const asked = { chainId: config.chainId, contractAddress: address, nonce }
  const { r, s, yParity } = await walletClient.signAuthorization(asked)
  return { r, s, yParity: yParity ?? 0, slugs }
}

/** Without React, the page's values are available in the console. */
const plain = { client, sendWithViem, authorizeWithViem }

declare global {
  interface Window {
    plain: typeof plain
  }
}

window.plain = plain
