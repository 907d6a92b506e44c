import { randomBytes } from 'node:crypto'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { getContractAddress } from 'viem'

/** The chain of a staging is made anew, and its first account deploys the contract first: everybody's gets this address. */
const CONTRACT = getContractAddress({ from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', nonce: 0n }).toLowerCase()
const CHAIN_ID = 31337
const secret = (bytes: number) => randomBytes(bytes).toString('base64url')

/** Every file of the folder, by name. */
export function createFiles(parameters: { folder: string; url: string; user: string }): Record<string, string> {
  const { folder, url, user } = parameters
  const databasePassword = secret(24)
  const databaseUrl = `postgres://countersign:${databasePassword}@postgres/countersign\n`
  // One address is enough for app, API, chain and receipts: the front leads to each.
  const webConfig = {
    apiBaseUrl: url,
    chainId: CHAIN_ID,
    rpcUrl: `${url}/rpc`,
    chainName: 'Staging chain (MOCK)',
    maxFeePerGas: '100000000000',
    faucetUrl: `${url}/rpc/faucet`,
    ipfsGatewayUrl: url,
    attestations: { chainId: CHAIN_ID, rpcUrl: `${url}/rpc`, address: CONTRACT },
    allowMock: true,
  }
  const isLocal = url.startsWith('http:')
  return {
    'staging-password': `${secret(18)}\n`,
    'database-url': databaseUrl,
    'postgres-password': `${databasePassword}\n`,
    'google-client-secret': `${secret(24)}\n`,
    'publisher-key': `0x${randomBytes(32).toString('hex')}\n`,
    'root-secret': `${randomBytes(32).toString('hex')}\n`,
    'web-config.json': `${JSON.stringify(webConfig, null, 2)}\n`,
    '.env': `# Made by npm run staging; deploy/compose.staging.yaml says what each is for.
PUBLIC_URL=${url}
PAGES_URL=${isLocal ? 'http://localhost:8461' : ''}
COOKIE_SAMESITE=${isLocal ? 'lax' : 'none'}
ENTROPY_PUBLIC_KEY=${createSimulatedSatellite().publicKey}
ATTESTATIONS_ADDRESS=${CONTRACT}
TRUSTED_PROXIES=
STAGING_USER=${user}
SECRETS_DIR=${folder}
`,
  }
}

export function parseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, origin } = new URL(text)
  const isSafe = protocol === 'https:' || (protocol === 'http:' && hostname === 'localhost')
  return isSafe && text.replace(/\/$/, '') === origin ? origin : undefined
}
