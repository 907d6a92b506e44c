import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { parseArguments } from '@countersign/service'
import { getContractAddress } from 'viem'

const USAGE = `usage: npm run staging -- DIR [--url URL]

Prepares a rehearsal: makes a folder with every secret and setting that deploy/compose.staging.yaml needs. Everything in it is new, random, and
good for simulated silicon and test networks alone. It overwrites nothing.
  --url URL   where browsers will find it (http://localhost:8500). Any other host needs https: a proxy that ends TLS before port 8500, and an identity
              provider of yours (OIDC_ISSUER, OIDC_CLIENT_ID in DIR/.env, its secret in DIR/google-client-secret)
  --help      says this

Example: npm run staging -- staging
Exit codes: 0 done, 1 the folder cannot be made, 2 wrong arguments.
`

/** The chain of a staging is made anew, and its first account deploys the contract first: everybody's gets this address. */
const CONTRACT = getContractAddress({ from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', nonce: 0n }).toLowerCase()
const CHAIN_ID = 31337
/** Of those that are root while they prepare it: containers are not. */
const CONTAINER_USER = 65_532

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

function prepare(folder: string, url: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
  const isRoot = process.getuid?.() === 0
  const [uid, gid] = isRoot ? [CONTAINER_USER, CONTAINER_USER] : [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o700)
  const files = createFiles({ folder, url, user: `${uid}:${gid}` })
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name)
    writeFileSync(path, text, { flag: 'wx', mode: 0o400 })
    // PostgreSQL has a user of its own, and nobody else of the machine gets into the folder.
    if (name === 'postgres-password') chmodSync(path, 0o444)
    if (isRoot && name !== '.env') chownSync(path, uid, gid)
  }
  process.stdout.write(`Prepared ${folder}, for ${url}. The password is in ${join(folder, 'staging-password')}.
Next: docker compose --env-file ${join(folder, '.env')} -f deploy/compose.staging.yaml up -d
`)
}

const parsed = parseArguments(process.argv.slice(2), { url: { type: 'string' } }, { takesPositionals: true })
if (parsed.kind === 'help') {
  process.stdout.write(USAGE)
} else {
  const [folder, ...others] = parsed.kind === 'run' ? parsed.positionals : []
  const url = parseUrl(parsed.kind === 'run' ? (parsed.values.url ?? 'http://localhost:8500') : '')
  const fault =
    parsed.kind === 'fault'
      ? parsed.fault
      : folder === undefined || others.length > 0
        ? 'Expected one folder. See --help.'
        : '--url: expected https://HOST, or http://localhost:PORT'
  if (folder === undefined || others.length > 0 || url === undefined) {
    process.stderr.write(`${fault}\n`)
    process.exitCode = 2
  } else {
    try {
      prepare(resolve(folder), url)
    } catch (error) {
      process.stderr.write(`${error instanceof Error ? error.message : 'the folder cannot be made'}\n`)
      process.exitCode = 1
    }
  }
}
