import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { findFreePorts, startOidcProvider } from '@countersign/testing'

export const QUOTE_MS = 39
/** The app's, where sign-in returns to. */
export const ORIGIN = 'http://localhost:5173'

export const ENCLAVE = { main: 'services/enclave/src/main.ts', msg: 'Started the enclave' }
export const COORDINATOR = { main: 'services/coordinator/src/main.ts', msg: 'Started the coordinator' }

/** Identity provider, enclave and coordinator. The provider is in this process, the others have their own. */
export type Stack = {
  /** Where browsers reach the coordinator. */
  url: string
  /** Where it listens. */
  address: string
  coordinator: ChildProcess
  enclave: ChildProcess
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
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const each of stops.toReversed()) await each()
  }
  try {
    const [port = 0] = await findFreePorts(1)
    const oidc = await startOidcProvider({
      redirectUris: [`http://localhost:${port}/auth/google/callback`],
      accounts: Array.from({ length: users }, (_, index) => toAccount(index)),
    })
    stops.push(() => oidc.stop())
    const enclave = await startProcess(ENCLAVE, toEnclaveEnv({ folder, limit, oidc }))
    stops.push(() => stopProcess(enclave.child))
    const coordinator = await startProcess(COORDINATOR, {
      ...toCoordinatorEnv({ port, limit, oidc, enclave, satellite }),
      DATABASE_URL: databaseUrl,
    })
    stops.push(() => stopProcess(coordinator.child))
    return {
      url: `http://localhost:${port}`,
      address: coordinator.address,
      coordinator: coordinator.child,
      enclave: enclave.child,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Oidc = { issuer: string; clientId: string; clientSecret: string }

export function toEnclaveEnv({ folder, limit, oidc }: { folder: string; limit: number; oidc: Oidc }) {
  return {
    MOCK_ATTESTATION: 'true',
    BATCH_LIMIT: String(limit),
    PORT: '0',
    QUOTE_SOURCE: 'mock',
    MOCK_QUOTE_LATENCY_MS: String(QUOTE_MS),
    ROOT_SECRET: `file:${folder}/root-secret-${limit}`,
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
  }
}

/** Without a database: whoever starts it says which. */
export function toCoordinatorEnv(parameters: {
  port: number
  limit: number
  oidc: Oidc
  enclave: { address: string }
  satellite: { address: string; publicKey: string }
}) {
  const { port, limit, oidc, enclave, satellite } = parameters
  return {
    MOCK_ATTESTATION: 'true',
    BATCH_LIMIT: String(limit),
    PORT: String(port),
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: ORIGIN,
    OIDC_GOOGLE_ISSUER: oidc.issuer,
    OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
    OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
    ENCLAVE_URL: enclave.address,
    ENTROPY_URL: satellite.address,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    RATE_LIMIT_SIGN: 'off',
    RATE_LIMIT_AUTH: 'off',
    RATE_LIMIT_PROOF: 'off',
  }
}

export function toAccount(index: number) {
  return { sub: `user-${index}`, email: `user-${index}@example.com`, name: `User ${index}` }
}

export type Started = { child: ChildProcess; address: string; publicKey: string }

/** Starts a process and waits for the line of its log that says where it listens. */
export async function startProcess(
  { main, msg }: { main: string; msg: string },
  env: Record<string, string> = {},
): Promise<Started> {
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

export const startSatelliteServer = () =>
  startProcess({ main: 'trials/bench/satelliteServer.ts', msg: 'Started the satellite' })

export const startEchoServer = (env: Record<string, string> = {}) =>
  startProcess({ main: 'trials/bench/echoServer.ts', msg: 'Started the echo server' }, env)

export async function stopProcess(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const killed = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(killed)
}
