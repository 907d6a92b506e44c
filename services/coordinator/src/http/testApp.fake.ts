import { type Hex, hashUnsignedTransaction, type TxMetadata, toHex } from '@countersign/protocol'
import { z } from '@hono/zod-openapi'
import { type AppConfig, type AppDeps, createApp } from '../app.ts'
import {
  createFakeClock,
  createFakeEnclave,
  createFakeEntropy,
  createFakeLog,
  createFakeProvider,
  createFakeRandom,
  createFakeSelfReport,
  type FakeIdentity,
} from '../ports.fake.ts'
import type { SignDigestRequest } from '../sign/signDigest.ts'
import { createMemoryStore } from '../store/memoryStore.fake.ts'

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

export const toDigest = (metadata: TxMetadata): Hex => `0x${toHex(hashUnsignedTransaction(metadata))}`

/** What `POST /sign/digest` is sent when all is well. */
export const signBody = { digest: toDigest(txMetadata), txMetadata }
export const signed = { signature: `0x${'1b'.repeat(65)}`, slug: 'abcdefghijklmnopqrstuQ' } as const

export type TestInit = { method?: string; headers?: Record<string, string>; body?: string; address?: string }

/** The app over fakes. Every answer is checked against the app's own OpenAPI document. */
export function createTestApp(changes: { config?: Partial<AppConfig>; deps?: Partial<AppDeps> } = {}) {
  const clock = createFakeClock()
  const store = createMemoryStore()
  const enclave = createFakeEnclave({ clock })
  const entropy = createFakeEntropy()
  const selfReport = createFakeSelfReport()
  const log = createFakeLog()
  const google = createFakeProvider(alice)
  const other = createFakeProvider(bob)
  const signings: SignDigestRequest[] = []
  const config: AppConfig = {
    publicUrl: API,
    allowedOrigins: [APP, OTHER_APP],
    cookieSameSite: 'none',
    sessionTtlMs: 43_200_000,
    sessionIdleMs: 7_200_000,
    trustedProxies: [],
    rateLimits: { sign: 'off', provision: 'off', auth: 'off', proof: 'off' },
    allowedChainIds: undefined,
    ...changes.config,
  }
  const { app, stop } = createApp({
    store,
    enclave,
    entropy,
    selfReport,
    providers: new Map([
      ['google', google],
      ['other', other],
    ]),
    signDigest: async (request) => {
      signings.push(request)
      return signed
    },
    clock,
    random: createFakeRandom(),
    log,
    ...changes.deps,
    config,
  })
  let checkAnswer: ((method: string, path: string, response: Response) => Promise<void>) | undefined

  async function request(path: string, { address = '203.0.113.1', ...init }: TestInit = {}): Promise<Response> {
    const env = { incoming: { socket: { remoteAddress: address } } }
    const response = await app.request(`${config.publicUrl}${path}`, init, env)
    checkAnswer ??= createAnswerCheck(await (await app.request('/openapi.json', {}, env)).text())
    await checkAnswer(init.method ?? 'GET', path, response.clone())
    return response
  }

  return {
    app,
    stop,
    request,
    store,
    clock,
    enclave,
    entropy,
    selfReport,
    log,
    google,
    other,
    signings,
    browser: () => createBrowser(request),
  }
}

export type TestApp = ReturnType<typeof createTestApp>

/** Keeps cookies as a browser does, and navigates through the (fake) provider. */
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
    /** Starts a sign-in and answers where the provider would send the browser back to. */
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

type Json = Record<string, unknown>

/** Reads the document as a stranger's client would: by its text alone. */
function createAnswerCheck(text: string) {
  const inlined = text.replaceAll('#/components/schemas/', '#/$defs/')
  const document = JSON.parse(inlined) as { paths: Record<string, Json>; components: { schemas: Json } }
  const toSchema = (schema: Json) =>
    z.fromJSONSchema({ ...schema, $defs: document.components.schemas } as Parameters<typeof z.fromJSONSchema>[0])
  const cache = new Map<string, z.ZodType>()

  return async (method: string, path: string, response: Response): Promise<void> => {
    if (method === 'HEAD' || method === 'OPTIONS') return
    const type = (response.headers.get('content-type') ?? '').replace(/;.*/, '')
    const operation = findOperation(document.paths, method, new URL(path, 'http://x').pathname)
    const responses = (operation?.responses ?? {}) as Record<string, { content?: Record<string, { schema: Json }> }>
    // Methods and paths that are not there can be in no document; what they are answered is.
    const isUndescribed = operation === undefined || response.status === 404
    const described = isUndescribed ? undefined : responses[response.status]
    if (!isUndescribed && described === undefined) {
      throw new Error(`${method} ${path} answered ${response.status}, which its description does not know`)
    }
    if (response.status === 302 || response.status === 304) return
    const schema =
      described?.content?.[type]?.schema ??
      (isUndescribed && type === 'application/problem+json' ? { $ref: '#/$defs/Problem' } : undefined)
    if (schema === undefined) throw new Error(`${method} ${path} answered ${response.status} as ${type}`)
    if (type === 'text/html') return
    const key = JSON.stringify(schema)
    const parsed = cache.get(key) ?? toSchema(schema)
    cache.set(key, parsed)
    parsed.parse(await response.json())
  }
}

function findOperation(paths: Record<string, Json>, method: string, path: string): Json | undefined {
  const isMatch = (pattern: string) =>
    new RegExp(`^${pattern.replace(/\{[^}]+\}/g, '[^/]+').replaceAll('.', '\\.')}$`).test(path)
  const exact = paths[path] ?? Object.entries(paths).find(([pattern]) => isMatch(pattern))?.[1]
  return exact?.[method.toLowerCase()] as Json | undefined
}
