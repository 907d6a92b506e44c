import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Hex, hashUnsignedTransaction, type TxMetadata, toHex } from '@countersign/protocol'
import { createTestBrowser, startOidcProvider, startPostgres, startSatellite } from '@countersign/testing'
import { type EnclaveProcess, startEnclave } from '../../enclave/test/enclaveProcess.ts'

export const APP = 'http://localhost:5173'

const MAIN = new URL('../src/main.ts', import.meta.url).pathname

/** A coordinator as its own process, from its environment alone. */
export type CoordinatorProcess = {
  child: ChildProcess
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts a coordinator, and waits until it says that it has started. Its lines go to `output`. */
export async function startCoordinator(env: Record<string, string>, output: string[]): Promise<CoordinatorProcess> {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', MAIN], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        output.push(line)
        if (line.includes('"Started the coordinator"')) resolve()
      })
    }
    child.once('exit', () => reject(new Error(`the coordinator ended: ${lines.join('\n')}`)))
  })
  return {
    child,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
      return child.exitCode
    },
  }
}

/** The whole backend as real processes on loopback: identity provider, satellite, enclave, database, coordinator. */
export async function startBackend(parameters: { kind: 'pglite' | 'postgres' }) {
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const each of stops.toReversed()) await each()
  }
  try {
    return { ...(await startParts(parameters, stops)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startParts({ kind }: { kind: 'pglite' | 'postgres' }, stops: (() => Promise<unknown>)[]) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-backend-'))
  stops.push(() => rm(folder, { recursive: true, force: true }))
  const port = await findFreePort()
  const url = `http://localhost:${port}`
  const output: string[] = []
  const oidc = await startOidcProvider({ redirectUris: [`${url}/auth/google/callback`] })
  stops.push(() => oidc.stop())
  const satellite = await startSatellite()
  stops.push(() => satellite.stop())
  const postgres = kind === 'postgres' ? await startPostgres({ isDurable: false }) : undefined
  stops.push(async () => postgres?.stop())
  const databaseUrl = await postgres?.createDatabase()
  const enclaveEnv = {
    MOCK_QUOTE_LATENCY_MS: '5',
    ROOT_SECRET: `file:${folder}/root-secret`,
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
  }
  let enclave: EnclaveProcess = await startEnclave(enclaveEnv)
  stops.push(() => enclave.kill('SIGKILL'))
  const enclaves = [enclave]
  const env = {
    PORT: String(port),
    MOCK_ATTESTATION: 'true',
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: APP,
    OIDC_GOOGLE_ISSUER: oidc.issuer,
    OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
    OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
    ENCLAVE_URL: enclave.url,
    ENTROPY_URL: satellite.url,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    DATA_DIR: join(folder, 'data'),
    RATE_LIMIT_SIGN: 'off',
    RATE_LIMIT_PROVISION: 'off',
    RATE_LIMIT_AUTH: 'off',
    RATE_LIMIT_PROOF: 'off',
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  }
  let coordinator = await startCoordinator(env, output)
  stops.push(() => coordinator.kill('SIGKILL'))

  return {
    url,
    oidc,
    satellite,
    databaseUrl,
    /** All that coordinator and enclave have written. */
    logs: () => [...output, ...enclaves.flatMap((one) => one.output)].join('\n'),
    stopCoordinator: (signal: NodeJS.Signals) => coordinator.kill(signal),
    async startCoordinator() {
      coordinator = await startCoordinator(env, output)
    },
    stopEnclave: (signal: NodeJS.Signals) => enclave.kill(signal),
    /** On the same port, with the same root secret. */
    async startEnclave() {
      enclave = await startEnclave({ ...enclaveEnv, PORT: new URL(env.ENCLAVE_URL).port })
      enclaves.push(enclave)
    },
  }
}

export type Backend = Awaited<ReturnType<typeof startBackend>>

/** A user in a browser. */
export function createUser({ url }: Pick<Backend, 'url'>) {
  const browser = createTestBrowser()
  const secrets = new Set<string>()
  const remember = () => {
    for (const [name, value] of browser.cookies('localhost')) if (name.startsWith('countersign-')) secrets.add(value)
  }
  const get = (path: string) => browser.request(`${url}${path}`)
  const post = (path: string, body?: unknown) =>
    browser.request(`${url}${path}`, {
      method: 'POST',
      headers: { origin: APP, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  return {
    /** Values of all cookies of ours that this browser ever had. */
    secrets,
    get,
    post,
    async signIn(as: string): Promise<URL> {
      const { url: page } = await browser.navigate(`${url}/auth/google`)
      remember()
      const back = await browser.navigateUntil(new URL(`?as=${as}`, page), APP)
      remember()
      return back
    },
    sign: (txMetadata: TxMetadata, digest: Hex = toDigest(txMetadata)) => post('/sign/digest', { digest, txMetadata }),
  }
}

export type TestUser = ReturnType<typeof createUser>

export function createTx(nonce: number): TxMetadata {
  return {
    chainId: 31337,
    nonce,
    to: `0x${'11'.repeat(20)}`,
    value: '1',
    data: '0x',
    gas: '21000',
    maxFeePerGas: '2',
    maxPriorityFeePerGas: '1',
  }
}

export function toDigest(txMetadata: TxMetadata): Hex {
  return `0x${toHex(hashUnsignedTransaction(txMetadata))}`
}

/** The coordinator's port has to be known before it starts: the identity provider redirects to it. */
async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
