import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { startOidcProvider } from '@countersign/testing'

export const QUOTE_MS = 39
/** The app's, where sign-in returns to. */
export const ORIGIN = 'http://localhost:5173'

/** Identity provider, enclave and coordinator. The provider is in this process, the others have their own. */
export type Stack = {
  /** Where browsers reach the coordinator. */
  url: string
  /** Where it listens. */
  address: string
  stop(): Promise<void>
}

export async function startStack(parameters: {
  folder: string
  satellite: { address: string; publicKey: string }
  databaseUrl: string
  /** Signatures that one quote covers. */
  limit: number
  /** Who can sign in. */
  users: number
}): Promise<Stack> {
  const { folder, satellite, databaseUrl, limit, users } = parameters
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  const redirectUris = [`http://localhost:${port}/auth/google/callback`]
  const oidc = await startOidcProvider({
    redirectUris,
    accounts: Array.from({ length: users }, (_, index) => toAccount(index)),
  })
  const mock = { MOCK_ATTESTATION: 'true', BATCH_LIMIT: String(limit) }
  const enclave = await startProcess(
    'services/enclave/src/main.ts',
    {
      ...mock,
      PORT: '0',
      QUOTE_SOURCE: 'mock',
      MOCK_QUOTE_LATENCY_MS: String(QUOTE_MS),
      ROOT_SECRET: `file:${folder}/root-secret-${limit}`,
      OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
    },
    'Started the enclave',
  )
  const coordinator = await startProcess(
    'services/coordinator/src/main.ts',
    {
      ...mock,
      PORT: String(port),
      COOKIE_SAMESITE: 'lax',
      ALLOWED_ORIGINS: ORIGIN,
      DATABASE_URL: databaseUrl,
      OIDC_GOOGLE_ISSUER: oidc.issuer,
      OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
      OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
      ENCLAVE_URL: enclave.address,
      ENTROPY_URL: satellite.address,
      ENTROPY_PUBLIC_KEY: satellite.publicKey,
      RATE_LIMIT_SIGN: 'off',
      RATE_LIMIT_AUTH: 'off',
      RATE_LIMIT_PROOF: 'off',
    },
    'Started the coordinator',
  )
  return {
    url: `http://localhost:${port}`,
    address: coordinator.address,
    async stop() {
      await stopProcess(coordinator.child)
      await stopProcess(enclave.child)
      await oidc.stop()
    },
  }
}

export function toAccount(index: number) {
  return { sub: `user-${index}`, email: `user-${index}@example.com`, name: `User ${index}` }
}

type Started = { child: ChildProcess; address: string; publicKey: string }

/** Starts a process and waits for the line of its log that says where it listens. */
export async function startProcess(main: string, env: Record<string, string>, msg: string): Promise<Started> {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', main], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${main} ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const parsed = JSON.parse(line)
      if (parsed.msg === msg) resolve({ child, address: parsed.address, publicKey: parsed.publicKey ?? '' })
      if (parsed.fault !== undefined || parsed.reason !== undefined) console.error(line)
    })
  })
}

export async function stopProcess(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const killed = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(killed)
}
