import { type Hex, ServiceClient } from '@countersign/sdk/client'
import { toServiceAccount } from '@countersign/sdk/viem'
import { createWalletClient, http, parseEther } from 'viem'
import { config } from './config.ts'

const client = new ServiceClient(config)

/** Sends with viem alone; the service is only where the signature comes from. */
async function sendWithViem({ to, ether }: { to: Hex; ether: string }) {
  const wallet = await client.api.getWallet()
  if (wallet === null) throw new Error('no wallet')
  const slugs: string[] = []
  const account = toServiceAccount(client, wallet, { onSigned: ({ slug }) => slugs.push(slug) })
  const walletClient = createWalletClient({ account, transport: http(config.rpcUrl) })
  const txHash = await walletClient.sendTransaction({ chain: client.publicClient.chain, to, value: parseEther(ether) })
  return { txHash, slugs }
}

/** A page without React has no component to show anything: what it has is at hand in the console. */
const plain = { client, sendWithViem }

declare global {
  interface Window {
    plain: typeof plain
  }
}

window.plain = plain
