import { setTimeout } from 'node:timers/promises'
import { ServiceClient } from '@countersign/sdk/client'
import { formatEther } from 'viem'
import { signIn } from './signIn.ts'
import { useSession } from './useSession.ts'

// Addresses of `npm run dev`.
const apiBaseUrl = 'http://localhost:8080'
const webUrl = 'http://localhost:5173'
const rpcUrl = 'http://localhost:8545'

useSession(apiBaseUrl, await signIn(apiBaseUrl, 'alice'))
const client = new ServiceClient({ apiBaseUrl, chainId: 31337, rpcUrl })

const { address } = (await client.api.getWallet()) ?? (await client.api.provisionWallet())
// Gets one ether from the local chain's faucet.
const funded = await fetch(`${rpcUrl}/faucet`, { method: 'POST', body: JSON.stringify({ address }) })
if (!funded.ok) throw new Error(`the faucet returned ${funded.status}`)
console.log(`Wallet      ${address}`)
console.log(`Balance     ${formatEther(await client.publicClient.getBalance({ address }))} ether`)

const { txHash, attestationSlug } = await client.signAndSend({
  to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  value: '0.001',
})
console.log(`Transaction ${txHash}`)
console.log(`Proof       ${webUrl}/proof/${attestationSlug}`)

const deadline = Date.now() + 60_000
let proof = await client.api.getProof(attestationSlug)
while (proof.status.startsWith('pending') && Date.now() < deadline) {
  await setTimeout(1_000)
  proof = await client.api.getProof(attestationSlug)
}
console.log(`Status      ${proof.status}`)
console.log(`Receipt     ${proof.ipfsUrl}`)
process.exitCode = proof.status === 'complete' ? 0 : 1
