import { Readable } from 'node:stream'
import { type Hex, hashUnsignedTransaction, type Opening, type TxMetadata, toPrefixedHex } from '@countersign/protocol'
import { createSignerFinder } from '../../src/accounts/session.ts'
import { type AppConfig, type AppDeps, createApp } from '../../src/app.ts'
import type { SignContent } from '../../src/sign/contents.ts'
import type { SignJob } from '../../src/sign/job.ts'
import type { Schedule } from '../../src/system.ts'
import { type AnswerCheck, createAnswerCheck } from '../answerCheck.ts'
import { createManualTime } from '../manualTime.ts'
import {
  createFakeClock,
  createFakeEnclave,
  createFakeEntropy,
  createFakeLog,
  createFakeProvider,
  createFakeRandom,
  createFakeSelfReport,
  type FakeIdentity,
} from '../ports.ts'
import { createMemoryStore } from '../store/memoryStore.ts'

export const APP = 'https://app.example'
export const OTHER_APP = 'https://other.example'
export const API = 'https://api.example'

const alice: FakeIdentity = { subject: 'alice', email: 'alice@mail.example', name: 'Alice' }
const bob: FakeIdentity = { subject: 'bob', email: 'bob@mail.example', name: null }

export const txMetadata: TxMetadata = {
  chainId: 11155111,
  nonce: 7,
  to: '0x00000000000000000000000000000000000000c5',
  value: '1000000000000000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '2000000000',
  maxPriorityFeePerGas: '1000000000',
}

export const toDigest = (metadata: TxMetadata): Hex => toPrefixedHex(hashUnsignedTransaction(metadata))

/** A valid body of `POST /sign/digest`. */
export const signBody = { digest: toDigest(txMetadata), txMetadata }
export const signed = { signature: `0x${'1b'.repeat(65)}`, slug: 'abcdefghijklmnopqrstuQ' } as const

/** The rest of an enclave’s answer for an off-chain signature. */
function toTestOpening(signContent: SignContent): Opening {
  const { kind, content, digest } = signContent as Extract<SignContent, { kind: 'message' }>
  const salt = '5a'.repeat(32)
  return { content: { salt, kind, digest, content }, signature: { salt, signature: signed.signature } }
}

export type TestInit = {
  method?: string
  headers?: Record<string, string>
  body?: string
  address?: string
  signal?: AbortSignal
}

/** For a service without logs. */
const emptyLogStore: AppDeps['logStore'] = {
  listLogs: async () => [],
  findCosigned: async () => undefined,
  readTiles: async () => [],
  readBundle: async () => undefined,
}

/** Cached by everything that the document depends on, because parsing it takes longer than most tests. */
const answerChecks = new Map<string, AnswerCheck>()

/** The app with fakes. Checks every response against the app's OpenAPI document. */
export function createTestApp(changes: { config?: Partial<AppConfig>; deps?: Partial<AppDeps> } = {}) {
  const clock = createFakeClock()
  const store = createMemoryStore()
  const enclave = createFakeEnclave({ clock })
  const entropy = createFakeEntropy()
  const selfReport = createFakeSelfReport()
  const log = createFakeLog()
  const google = createFakeProvider(alice)
  const other = createFakeProvider(bob, 'https://other-provider.example')
  const signings: SignJob[] = []
  const warnings: { type: string; data: object }[] = []
  const time = createManualTime(new Date(clock.now()))
  const config: AppConfig = {
    publicUrl: API,
    allowedOrigins: [APP, OTHER_APP],
    cookieSameSite: 'none',
    sessionTtlMs: 43_200_000,
    sessionIdleMs: 7_200_000,
    trustedProxies: [],
    rateLimits: { sign: 'off', provision: 'off', auth: 'off', proof: 'off' },
    allowedChainIds: undefined,
    entropySources: [{ kind: 'satellite', key: '5a'.repeat(32) }],
    ...changes.config,
  }
  const { sessionIdleMs } = config
  const { handleRequest, stop } = createApp({
    store,
    signers: createSignerFinder({ store: changes.deps?.store ?? store, clock, sessionIdleMs, slots: () => 2 }),
    logStore: emptyLogStore,
    getWebhookKeys: () => [],
    warnOf: async (type, data) => void warnings.push({ type, data }),
    rebuildReceipt: async () => undefined,
    exportProofs: () => Promise.reject(new Error('there is nothing to export')),
    enclave,
    entropy,
    selfReport,
    providers: new Map([
      ['google', google],
      ['other', other],
    ]),
    sign: async (request) => {
      signings.push(request)
      const { kind } = request.content
      return kind === 'message' || kind === 'typed-data'
        ? { ...signed, opening: toTestOpening(request.content) }
        : signed
    },
    clock,
    random: createFakeRandom(),
    log,
    schedule: time.schedule,
    ...changes.deps,
    config,
  })

  async function getAnswerCheck(): Promise<AnswerCheck> {
    const key = JSON.stringify([config.publicUrl, config.version])
    const known = answerChecks.get(key)
    if (known !== undefined) return known
    const document = await (await answer('/openapi.json')).text()
    const check = createAnswerCheck(document, { acceptUndescribed: true })
    answerChecks.set(key, check)
    return check
  }

  /** Like over a socket, without the check against the document. */
  async function answer(path: string, init: TestInit = {}): Promise<Response> {
    const { address: remoteAddress = '203.0.113.1', method = 'GET', headers = {}, body, signal } = init
    const incoming = Object.assign(Readable.from(body === undefined ? [] : [Buffer.from(body)]), {
      method,
      url: path,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      rawHeaders: Object.entries(headers).flat(),
      socket: { remoteAddress },
    })
    const answered = await handleRequest(incoming, () => signal ?? new AbortController().signal)
    const { status, encoding } = answered
    const content = typeof answered.body === 'string' ? Buffer.from(answered.body, encoding) : answered.body
    const pairs = Object.entries(answered.headers).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    )
    return new Response(method === 'HEAD' ? null : (content as BodyInit | null), { status, headers: pairs })
  }

  async function request(path: string, init: TestInit = {}): Promise<Response> {
    const response = await answer(path, init)
    const answers = await getAnswerCheck()
    await answers.check({ method: init.method ?? 'GET', path: new URL(path, API).pathname }, response)
    return response
  }

  /** Reads a stream event by event, and checks that each is a ProofPayload. */
  async function openEvents(path: string, init: TestInit = {}) {
    const response = await request(path, init)
    const answers = await getAnswerCheck()
    const events = readEvents(response, (data) => answers.checkResource('ProofPayload', data))
    return { response, ...events }
  }

  return {
    handleRequest,
    answer,
    stop,
    request,
    openEvents,
    store,
    clock,
    time,
    enclave,
    entropy,
    selfReport,
    log,
    google,
    other,
    signings,
    warnings,
    browser: () => createBrowser(request),
  }
}

export type TestApp = ReturnType<typeof createTestApp>

/** Keeps cookies like a browser, and navigates through the fake provider. */
function createBrowser(request: TestApp['request']) {
  const jar = new Map<string, string>()

  async function send(path: string, { headers = {}, ...init }: TestInit = {}) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await request(path, { ...init, headers: { ...(cookie === '' ? {} : { cookie }), ...headers } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/; Max-Age=0(;|$)/.test(line)) jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }

  const browser = {
    jar,
    send,
    get: (path: string, headers: Record<string, string> = {}) => send(path, { headers }),
    post: (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      send(path, {
        method: 'POST',
        headers: {
          origin: APP,
          'sec-fetch-site': 'cross-site',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    /** Starts a sign-in and returns the URL that the provider would redirect to. */
    async start(path = '/auth/google') {
      const response = await send(path)
      const state = new URL(response.headers.get('location') ?? 'none:').searchParams.get('state')
      return { response, state, callback: `${path.replace(/\?.*/, '')}/callback?code=good&state=${state}` }
    },
    async signIn(path = '/auth/google') {
      return send((await browser.start(path)).callback)
    },
  }
  return browser
}

/** Lets this much time pass in one turn of the event loop. */
export const scheduleAtOnce: Schedule = (task) => {
  const timer = setImmediate(task)
  return () => clearImmediate(timer)
}

/** A problem's status and code, such as `404 not_found`. */
export async function codeOf(response: Response): Promise<string> {
  const { code } = (await response.json()) as { code: string }
  return `${response.status} ${code}`
}

type Json = Record<string, unknown>

export type TestEvent = { id?: string; event?: string; retry?: string; data?: Json; comment?: string }

/** A client that reads one event at a time, on request. */
export function readEvents(response: Response, checkProof: (data: unknown) => void = () => {}) {
  const reader = (response.body ?? new ReadableStream()).getReader()
  const decoder = new TextDecoder()
  let text = ''

  /** The next event or comment. Undefined at the end. */
  async function next(): Promise<TestEvent | undefined> {
    while (!text.includes('\n\n')) {
      const { done, value } = await reader.read()
      if (done && text !== '') throw new Error(`the stream ended in ${JSON.stringify(text)}`)
      if (done) return undefined
      text += decoder.decode(value as Uint8Array, { stream: true })
    }
    const end = text.indexOf('\n\n')
    const lines = text.slice(0, end).split('\n')
    text = text.slice(end + 2)
    const event: TestEvent = {}
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
      if (name === 'data') event.data = JSON.parse(value) as Json
      else if (name === 'id' || name === 'event' || name === 'retry') event[name] = value
      else if (name === '') event.comment = value
      else throw new Error(`a line that is no field: ${JSON.stringify(line)}`)
    }
    if (event.data !== undefined) checkProof(event.data)
    return event
  }

  return { next, cancel: () => reader.cancel() }
}
