import { setTimeout } from 'node:timers/promises'
import type { AgentProof } from '@countersign/sdk/agent'
import { ServiceClient } from '@countersign/sdk/client'
import { createFetchBytes, type Manifest, parseManifest, verify } from '@countersign/verify'
import { formatUnits, type Hex } from 'viem'
import { runAgent } from './agent.ts'
import { createBudgetVault } from './createBudgetVault.ts'
import { startShop } from './shop.ts'

/** The configuration of the web app. */
type Config = {
  apiBaseUrl: string
  rpcUrl: string
  faucetUrl: string
  tokens: [{ address: Hex; name: string; decimals: number; symbol: string }]
  trust: Manifest
}

const SHOP: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const LIMIT = '100000'
const PRICE = '30000'

/** Creates a vault with a budget, lets an agent pay a shop until the budget ends, and verifies the proofs. */
export async function runExample(webUrl: string) {
  const config = (await (await fetch(`${webUrl}/config.json`)).json()) as Config
  const { apiBaseUrl, rpcUrl, faucetUrl, trust } = config
  const [token] = config.tokens
  if (trust.log === undefined)
    throw new Error('the state began without a log: run npm run dev -- --log --reset once, which deletes it')
  const toAmount = (units: string) => `${formatUnits(BigInt(units), token.decimals)} ${token.symbol}`

  // Every account starts with 100 of the local chain's token, so the vault needs no funds.
  const wanted = { apiBaseUrl, rpcUrl, log: trust.log, token: token.address, limit: LIMIT, payee: SHOP }
  const { key, vault } = await createBudgetVault(wanted)
  console.log(`Vault       ${vault.address}`)
  console.log(`Budget      ${toAmount(LIMIT)} per UTC day`)

  const shop = await startShop({
    rpcUrl,
    token: { address: token.address, name: token.name, version: '1' },
    payTo: SHOP,
    price: PRICE,
    fund: (address) => fetch(faucetUrl, { method: 'POST', body: JSON.stringify({ address }) }),
  })
  const proofs: AgentProof[] = []
  const onProof = (proof: AgentProof) => {
    proofs.push(proof)
    console.log(`Proof       ${webUrl}/proof/${proof.slug}`)
  }
  try {
    const left = await runAgent(shop.url, { apiBaseUrl, vault, key, onProof })
    console.log(`Budget ends ${toAmount(left)} left, a page costs ${toAmount(PRICE)}`)
  } finally {
    await shop.stop()
  }

  const verified = []
  for (const proof of proofs) {
    const conclusion = await verifyProof(config, proof)
    console.log(`Verified    ${proof.slug}: ${conclusion}`)
    verified.push({ ...proof, conclusion })
  }
  return verified
}

/** Verifies a proof when it is complete. */
async function verifyProof({ apiBaseUrl, rpcUrl, trust }: Config, { slug, opening }: AgentProof): Promise<string> {
  const client = new ServiceClient({ apiBaseUrl, chainId: 31337, rpcUrl })
  const deadline = Date.now() + 60_000
  while ((await client.api.getProof(slug)).status !== 'complete') {
    if (Date.now() > deadline) throw new Error(`the proof ${slug} is not complete after a minute`)
    await setTimeout(500)
  }
  const fetchBytes = createFetchBytes({ fetch, timeoutMs: 10_000 })
  const { conclusion } = await verify(
    { fetchBytes, now: () => new Date() },
    {
      subject: { kind: 'proof', slug, api: apiBaseUrl },
      manifests: [parseManifest(JSON.stringify(trust))],
      gateways: [apiBaseUrl],
      rpc: rpcUrl,
      opening: new TextEncoder().encode(JSON.stringify(opening)),
      // The local stack's hardware is simulated.
      allowMock: true,
    },
  )
  return conclusion
}
