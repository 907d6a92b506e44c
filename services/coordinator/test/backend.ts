import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Hex, hashUnsignedTransaction, type TxMetadata, toHex } from '@countersign/protocol'
import {
  createTestBrowser,
  findFreePorts,
  startOidcProvider,
  startPostgres,
  startSatellite,
} from '@countersign/testing'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { createKeyring, toOwner } from '../../enclave/src/keys/deriveKey.ts'
import { type EnclaveProcess, startEnclave } from '../../enclave/test/enclaveProcess.ts'
import { type AnswerCheck, createAnswerCheck } from './answerCheck.ts'
import { startTamperingWire } from './tamperingWire.ts'

export const APP = 'http://localhost:5173'

/** Who can sign in. */
const accounts = ['alice', 'bob', 'carol', 'dave', 'erin'].map((sub) => ({
  sub,
  email: `${sub}@example.com`,
  name: `The one called ${sub}`,
}))

const MAIN = new URL('../src/main.ts', import.meta.url).pathname
const CRASHING_MAIN = new URL('./crashingMain.ts', import.meta.url).pathname

/** A service as its own process, from its environment alone. */
export type ServiceProcess = {
  child: ChildProcess
  ended: Promise<void>
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts a program, and waits until a line of its output says that it has started. */
export async function startProcess(parameters: {
  main: string
  env: Record<string, string>
  output: string[]
  started: string
}): Promise<ServiceProcess> {
  const { main, env, output, started } = parameters
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', main], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const ended = once(child, 'exit').then(() => {})
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        output.push(line)
        if (line.includes(started)) resolve()
      })
    }
    child.once('close', () => reject(new Error(`it ended: ${lines.join('\n')}`)))
  })
  return {
    child,
    ended,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      child.kill(signal)
      await ended
      return child.exitCode
    },
  }
}

/** Starts a coordinator. With `CRASH_AT` it is one that kills itself there, with `FREEZE_AT` one that freezes there. */
export function startCoordinator(env: Record<string, string>, output: string[]): Promise<ServiceProcess> {
  const main = env.CRASH_AT === undefined && env.FREEZE_AT === undefined ? MAIN : CRASHING_MAIN
  return startProcess({ main, env, output, started: '"Started the coordinator"' })
}

/** `env` is added to the coordinator's own. */
type BackendParameters = { kind: 'pglite' | 'postgres'; env?: Record<string, string> }

/** The whole backend as real processes on loopback: identity provider, satellite, enclave, database, coordinator. */
export async function startBackend(parameters: BackendParameters) {
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

async function startParts({ kind, env: more = {} }: BackendParameters, stops: (() => Promise<unknown>)[]) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-backend-'))
  stops.push(() => rm(folder, { recursive: true, force: true }))
  // Known before they start: the identity provider redirects to them.
  const [port = 0, secondPort = 0] = await findFreePorts(2)
  const url = `http://localhost:${port}`
  const secondUrl = `http://localhost:${secondPort}`
  const output: string[] = []
  const oidc = await startOidcProvider({
    redirectUris: [url, secondUrl].map((each) => `${each}/auth/google/callback`),
    accounts,
  })
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
  const wire = await startTamperingWire(enclave.url)
  stops.push(() => wire.stop())
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
    ...more,
  }
  let coordinator = await startCoordinator(env, output)
  stops.push(() => coordinator.kill('SIGKILL'))
  let answers: Promise<AnswerCheck> | undefined
  const getAnswers = () => {
    answers ??= fetch(`${url}/openapi.json`).then(async (response) => createAnswerCheck(await response.text()))
    return answers
  }

  /** Throws unless the coordinator's own document describes the answer. */
  async function checkAnswer(target: URL, method: string, response: Response) {
    if (target.origin !== url) return
    const { check } = await getAnswers()
    await check({ method, path: target.pathname }, response)
  }

  return {
    url,
    /** Undefined where the database is embedded. */
    databaseUrl,
    oidc,
    satellite,
    wire,
    checkAnswer,
    /** What the answers of this backend were checked as: `get /proof/{slug} 404`. */
    seenAnswers: async () => (await getAnswers()).seen,
    /** A request of somebody without a browser. */
    async call(path: string, init: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
      const target = new URL(path, url)
      const response = await fetch(target, { redirect: 'manual', ...init })
      await checkAnswer(target, init.method ?? 'GET', response)
      return response
    },
    /** All that coordinator and enclave have written. */
    logs: () => [...output, ...enclaves.flatMap((one) => one.output)].join('\n'),
    stopCoordinator: (signal: NodeJS.Signals) => coordinator.kill(signal),
    /** Wakes a coordinator that was frozen. */
    wakeCoordinator: () => coordinator.child.kill('SIGCONT'),
    isCoordinatorFrozen: async () =>
      /^State:\s+T/m.test(await readFile(`/proc/${coordinator.child.pid}/status`, 'utf8')),
    /** Resolves when the coordinator's process has ended. */
    coordinatorEnded: () => coordinator.ended,
    async startCoordinator(changes: Record<string, string> = {}) {
      coordinator = await startCoordinator({ ...env, ...changes }, output)
    },
    /** Another coordinator on the same database, at a port of its own. */
    async startSecond() {
      const process = await startCoordinator({ ...env, PORT: String(secondPort) }, output)
      return { url: secondUrl, checkAnswer, stop: () => process.kill('SIGKILL') }
    },
    stopEnclave: (signal: NodeJS.Signals) => enclave.kill(signal),
    /** SIGSTOP and SIGCONT: it stays, and does nothing meanwhile. */
    signalEnclave: (signal: 'SIGSTOP' | 'SIGCONT') => enclave.child.kill(signal),
    /** On the same port, with the same root secret. */
    async startEnclave() {
      enclave = await startEnclave({ ...enclaveEnv, PORT: new URL(env.ENCLAVE_URL).port })
      enclaves.push(enclave)
    },
    /** Lends the database. PGlite is of one process, so there the coordinator is stopped, and started again afterwards. */
    async withDatabase<Result>(run: (query: Query) => Promise<Result>): Promise<Result> {
      if (databaseUrl !== undefined) return withPostgres(databaseUrl, run)
      await coordinator.kill('SIGTERM')
      const result = await withPglite(join(env.DATA_DIR, 'database'), run)
      coordinator = await startCoordinator(env, output)
      return result
    },
    /** The files of the embedded database. */
    readDataFiles: () => readFiles(env.DATA_DIR),
    /** The root secret, and the private keys of all wallets, in hex: what must never be seen anywhere. */
    async readKeys(): Promise<string[]> {
      const rootSecret = (await readFile(join(folder, 'root-secret'), 'utf8')).trim()
      const keyring = createKeyring(Buffer.from(rootSecret, 'hex'), new Uint8Array(32))
      const owners = accounts.map(({ sub }) => toOwner({ issuer: oidc.issuer, subject: sub }))
      return [rootSecret, ...owners.map((owner) => keyring.withPrivateKey(owner, (key) => toHex(key)))]
    },
  }
}

export type Query = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

async function withPostgres<Result>(connectionString: string, run: (query: Query) => Promise<Result>) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await run(async (text, values = []) => (await client.query(text, values)).rows)
  } finally {
    await client.end()
  }
}

async function withPglite<Result>(folder: string, run: (query: Query) => Promise<Result>) {
  const pglite = await PGlite.create(folder)
  try {
    return await run(async (text, values = []) => (await pglite.query<Record<string, unknown>>(text, values)).rows)
  } finally {
    await pglite.close()
  }
}

async function readFiles(folder: string): Promise<Buffer[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name))))
}

export type Backend = Awaited<ReturnType<typeof startBackend>>

/** A user in a browser. Every answer of the coordinator that it gets is checked. */
export function createUser({ url, checkAnswer }: Pick<Backend, 'url' | 'checkAnswer'>) {
  const browser = createTestBrowser()
  const secrets = new Set<string>()
  const setCookies: string[] = []

  async function request(target: URL, init: Parameters<typeof browser.request>[1] = {}): Promise<Response> {
    const response = await browser.request(target, init)
    await checkAnswer(target, init.method ?? 'GET', response)
    setCookies.push(...response.headers.getSetCookie().filter((line) => line.startsWith('countersign-')))
    for (const [name, value] of browser.cookies('localhost')) if (name.startsWith('countersign-')) secrets.add(value)
    return response
  }

  /** Follows redirects up to a page of the provider's, or to one that leaves to the app. */
  async function follow(start: URL): Promise<URL> {
    let target = start
    for (let hop = 0; hop < 20; hop++) {
      const response = await request(target)
      const location = response.headers.get('location')
      if (location === null && target.origin === url) throw new Error(`no sign-in: ${await response.text()}`)
      await response.body?.cancel()
      if (location === null) return target
      target = new URL(location, target)
      // Nothing that the provider gave for this sign-in may be found anywhere afterwards.
      const code = target.origin === url ? target.searchParams.get('code') : null
      if (code !== null) secrets.add(code)
      if (target.origin === APP) return target
    }
    throw new Error('too many redirects')
  }

  const get = (path: string) => request(new URL(path, url))
  const post = (path: string, body?: unknown) =>
    request(new URL(path, url), {
      method: 'POST',
      headers: { origin: APP, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  return {
    /** Values of all cookies of ours that this browser ever had, and the codes of its sign-ins. */
    secrets,
    /** As the coordinator wrote them. */
    setCookies,
    /** The session cookie, as the browser sends it. */
    get cookie() {
      return `countersign-session=${browser.cookies('localhost').get('countersign-session')}`
    },
    get,
    post,
    async signIn(as: string, query = ''): Promise<URL> {
      const page = await follow(new URL(`/auth/google${query}`, url))
      return page.origin === APP ? page : follow(new URL(`?as=${as}`, page))
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
