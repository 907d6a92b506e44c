import { fromHex, hashLogin, toStampBytes } from '@countersign/protocol'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ServiceClient } from '../client/ServiceClient.ts'
import { attestWallet } from '../vaults/vaultCalls.ts'
import { boundSession } from './boundSession.ts'
import { directSession } from './directSession.ts'
import { openKeyStore } from './keyStore.ts'

const API = 'https://api.example'
const ADDRESS = `0x${'a1'.repeat(20)}` as const
const HOUR_MS = 3_600_000

type Call = { path: string; headers: Headers; credentials: RequestCredentials | undefined; body: Record<string, never> }
const calls: Call[] = []
/** The client key of the open session. */
let clientKey: string | null | undefined
/** How far the service's clock is ahead of the browser's. */
let offsetMs = 0

beforeEach(() => {
  calls.length = 0
  clientKey = undefined
  offsetMs = 0
  vi.stubGlobal('fetch', async (url: string, { body, headers, credentials }: RequestInit) => {
    const path = url.slice(API.length)
    const parsed = typeof body === 'string' ? JSON.parse(body) : {}
    calls.push({ path, headers: new Headers(headers), credentials, body: parsed })
    const iso = (ms: number) => new Date(ms).toISOString()
    const expiresAt = iso(Date.now() + offsetMs + HOUR_MS)
    const answers: Record<string, object> = {
      '/auth/app/token': { secret: 'ab'.repeat(32), expiresAt },
      '/auth/me': { id: 'u1', email: 'alice@example.test', name: null },
      '/auth/logout': { ok: true },
      '/auth/session': { kind: 'bound', clientKey, createdAt: iso(1), expiresAt, time: iso(Date.now() + offsetMs) },
      '/wallet/me': {
        address: ADDRESS,
        createdAt: iso(1),
        provenance: { entropyHash: '00'.repeat(32), entropySig: '00'.repeat(64), satelliteSource: 'test' },
      },
    }
    if (path === '/auth/app/token') clientKey = parsed.clientKey
    const status = clientKey === undefined ? 401 : path in answers ? 200 : 404
    return new Response(JSON.stringify(status === 200 ? answers[path] : { code: 'not_authenticated' }), { status })
  })
})

afterEach(async () => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  await openKeyStore(API).clear()
})

const createClient = (session = boundSession()) =>
  new ServiceClient({ apiBaseUrl: API, chainId: 1, rpcUrl: 'http://127.0.0.1:1', session })

async function startLogin(client: ServiceClient): Promise<URL> {
  return new URL((await client.config.session?.startLogin(client.config, client.loginUrl())) ?? '')
}

describe('a bound session', () => {
  test('stamps with the key of the sign-in, in every tab, until the user signs out', async () => {
    clientKey = (await startLogin(createClient())).searchParams.get('client_key')
    const otherTab = createClient()
    await attestWallet(otherTab).catch(() => {})
    const { stamp } = (calls.at(-1)?.body ?? {}) as never as { stamp: { issuedMs: number; signature: string } }
    const request = { address: ADDRESS, vault: null, kind: 'address', digest: null, issuedMs: stamp.issuedMs } as const
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', fromHex(clientKey ?? ''), algorithm, false, ['verify'])
    expect(await crypto.subtle.verify(algorithm, key, fromHex(stamp.signature), toStampBytes(request))).toBe(true)

    await createClient().api.logout()
    await expect(attestWallet(otherTab)).rejects.toMatchObject({ code: 'session_not_bound' })
    expect(await openKeyStore(API).list()).toEqual([])
  })

  test('forgets the keys of earlier sessions, so the service can’t ask for a stamp of another user', async () => {
    const ofAlice = (await startLogin(createClient())).searchParams.get('client_key')
    clientKey = ofAlice
    await createClient().api.me()
    clientKey = (await startLogin(createClient())).searchParams.get('client_key')
    await createClient().api.me()
    clientKey = ofAlice
    await expect(attestWallet(createClient())).rejects.toMatchObject({ code: 'session_not_bound' })
  })

  test('keeps the key out of reach of the page', async () => {
    await startLogin(createClient())
    const [key] = await openKeyStore(API).list()
    await expect(crypto.subtle.exportKey('pkcs8', key?.privateKey as CryptoKey)).rejects.toThrow()
  })

  test('forgets a key that no sign-in used within 10 minutes, and keeps the key of a session', async () => {
    const used = (await startLogin(createClient())).searchParams.get('client_key')
    clientKey = used
    await createClient().api.me()
    await startLogin(createClient())
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 11 * 60_000)
    expect((await openKeyStore(API).list()).map(({ publicKey }) => publicKey)).toEqual([used])
  })

  test.each([
    [
      'IndexedDB is blocked',
      () =>
        vi.spyOn(indexedDB, 'open').mockImplementation(() => {
          throw new DOMException('blocked', 'SecurityError')
        }),
    ],
    [
      'the key is not stored',
      () =>
        vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
          throw new DOMException('no', 'DataCloneError')
        }),
    ],
    [
      'the key is lost at once',
      () => vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => ({}) as IDBRequest<IDBValidKey>),
    ],
  ])('a sign-in fails with `client_key_unavailable` if %s', async (_, breakIt) => {
    breakIt()
    await expect(startLogin(createClient())).rejects.toMatchObject({ code: 'client_key_unavailable' })
    vi.restoreAllMocks()
  })
})

test.each([
  ['a request', () => createClient().api.me()],
  ['another sign-in', () => startLogin(createClient())],
])('what another tab deletes during %s does not return', async (_, act) => {
  clientKey = (await startLogin(createClient())).searchParams.get('client_key')
  const { getAll } = IDBObjectStore.prototype
  let signingOut: Promise<void> | undefined
  vi.spyOn(IDBObjectStore.prototype, 'getAll').mockImplementationOnce(function (this: IDBObjectStore) {
    signingOut = openKeyStore(API).clear()
    return getAll.call(this)
  })
  await Promise.allSettled([act()])
  await signingOut
  expect((await openKeyStore(API).list()).map(({ publicKey }) => publicKey)).not.toContain(clientKey)
})

test('signs out without IndexedDB', async () => {
  clientKey = (await startLogin(createClient())).searchParams.get('client_key')
  vi.spyOn(indexedDB, 'open').mockImplementation(() => {
    throw new DOMException('blocked', 'SecurityError')
  })
  await createClient().api.logout()
  expect(calls.at(-1)?.path).toBe('/auth/logout')
  await expect(createClient().api.me()).rejects.toMatchObject({ code: 'client_key_unavailable' })
  vi.restoreAllMocks()
})

test('a key store of a newer version is not used, and does not prevent a sign-out', async () => {
  const name = 'countersign:https://newer.example'
  await new Promise<void>((resolve, reject) => {
    const opening = indexedDB.open(name, 2)
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      opening.result.close()
      resolve()
    }
  })
  const client = new ServiceClient({ ...createClient().config, apiBaseUrl: 'https://newer.example' })
  await expect(startLogin(client)).rejects.toMatchObject({ code: 'client_key_unavailable' })
  await client.api.logout().catch(() => {})
  expect(calls).toHaveLength(1)
  indexedDB.deleteDatabase(name)
})

test('a wrong clock is reported at each call, and does not delete the key', async () => {
  clientKey = (await startLogin(createClient())).searchParams.get('client_key')
  const nowMs = Date.now()
  offsetMs = -24 * HOUR_MS
  for (const _ of [1, 2]) await expect(createClient().api.me()).rejects.toMatchObject({ code: 'clock_wrong' })
  expect((await openKeyStore(API).list())[0]?.untilMs).toBeGreaterThan(nowMs)
})

describe('a direct session', () => {
  const options = {
    provider: 'app',
    issuer: 'https://issuer.example',
    clientId: 'page',
    authorizationUrl: 'https://issuer.example/auth',
  }
  const page = location.href
  afterEach(() => history.replaceState(null, '', page))

  const toPart = (value: object) => btoa(JSON.stringify(value)).replaceAll('=', '')

  /** Starts a sign-in and returns to the page with the provider's answer. */
  async function signIn(change: { claims?: object; state?: string; answer?: Record<string, string> } = {}) {
    const url = await startLogin(createClient(directSession(options)))
    const [nonce, state] = ['nonce', 'state'].map((name) => url.searchParams.get(name) ?? '')
    const claims = {
      iss: options.issuer,
      aud: 'page',
      sub: 'alice',
      nonce,
      exp: Date.now() / 1000 + 60,
      email: 'a@x.test',
      email_verified: true,
    }
    const idToken = `e30.${toPart({ ...claims, ...change.claims })}.c2ln`
    const answer = new URLSearchParams(change.answer ?? { id_token: idToken })
    answer.set('state', change.state ?? state ?? '')
    history.replaceState(null, '', `/#${answer}`)
    const session = directSession(options)
    return { url, session, client: createClient(session) }
  }

  test('opens a session with the page’s own ID token, without a cookie, and clears the address bar', async () => {
    const { url, client, session } = await signIn()
    expect(await client.api.me()).toMatchObject({ id: 'u1' })
    const [opened] = calls
    expect(opened).toMatchObject({ path: '/auth/app/token', credentials: 'omit' })
    const { loginSecret, clientKey } = (opened?.body ?? {}) as never as { loginSecret: string; clientKey: string }
    const nonce = hashLogin({ loginSecret: fromHex(loginSecret), clientKey })
    expect(url.searchParams.get('nonce')).toBe(
      btoa(String.fromCharCode(...nonce))
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll('=', ''),
    )
    expect(calls.at(-1)).toMatchObject({ path: '/auth/me', credentials: 'omit' })
    expect(calls.at(-1)?.headers.get('authorization')).toBe(`Session ${'ab'.repeat(32)}`)
    expect(location.href).toBe(page)
    expect(await session.readIdentity(client.config)).toEqual({
      issuer: options.issuer,
      subject: 'alice',
      email: 'a@x.test',
    })
  })

  test.each([
    ['another nonce', { claims: { nonce: 'x' } }],
    ['another issuer', { claims: { iss: 'https://evil.example' } }],
    ['another audience', { claims: { aud: 'other' } }],
    ['two audiences', { claims: { aud: ['page', 'other'] } }],
    ['an expired token', { claims: { exp: Date.now() / 1000 - 3600 } }],
    ['a state that this page did not store', { state: 'ff'.repeat(32) }],
    ['an error', { answer: { error: 'server_error' } }],
    ['no token', { answer: {} }],
  ])('opens no session with %s', async (_, change) => {
    const { client } = await signIn(change)
    await expect(client.api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
    expect(calls).toEqual([])
    expect(location.hash).toBe('')
  })

  test.each([
    ['without a state', '/#id_token=e30.e30.c2ln'],
    ['with an empty state', '/#state=&id_token=e30.e30.c2ln'],
    ['in the query', '/?id_token=e30.e30.c2ln'],
  ])('removes an ID token that it did not ask for from the address, %s', async (_, url) => {
    history.replaceState(null, '', url)
    await expect(createClient(directSession(options)).api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
    expect(location.href).not.toContain('id_token')
  })

  test('removes a code that it did not ask for from the page of the redirect URI, and from no other', async () => {
    const tokenUrl = 'https://issuer.example/token'
    history.replaceState(null, '', '/?code=abc&state=foreign')
    const here = directSession({ ...options, tokenUrl, redirectUri: `${location.origin}/` })
    await expect(createClient(here).api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
    expect(location.search).toBe('')
    history.replaceState(null, '', '/?code=abc&state=foreign')
    const elsewhere = directSession({ ...options, tokenUrl, redirectUri: `${location.origin}/return` })
    expect(await createClient(elsewhere).api.me()).toBeNull()
    expect(location.search).toBe('?code=abc&state=foreign')
  })

  test('gives the answer for one provider to no other', async () => {
    const { url } = await signIn()
    const other = directSession({ ...options, issuer: 'https://other.example' })
    await expect(createClient(other).api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
    expect(url.searchParams.get('state')).not.toBe('')
    expect(calls).toEqual([])
  })

  test('accepts the answer of the provider once', async () => {
    const { client } = await signIn()
    const answered = location.href
    await client.api.me()
    history.replaceState(null, '', answered)
    await expect(createClient(directSession(options)).api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
  })

  test('accepts no answer after 10 minutes', async () => {
    const { client } = await signIn()
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 11 * 60_000)
    await expect(client.api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
  })

  test('concurrent requests and session objects of the page share one answer', async () => {
    const { client, session } = await signIn()
    const other = createClient(directSession(options))
    const answers = await Promise.all([client.api.me(), client.api.me(), other.api.me().catch(() => null)])
    expect(answers.slice(0, 2)).toMatchObject([{ id: 'u1' }, { id: 'u1' }])
    expect(calls.filter(({ path }) => path === '/auth/app/token')).toHaveLength(1)
    expect(await session.readIdentity({ apiBaseUrl: `${API}/` })).toMatchObject({ subject: 'alice' })
    expect(location.href).toBe(page)
  })

  test.each(['#state=5', '?state=5&code=6', '#/route?state=5'])(
    'leaves the address %s of the app alone',
    async (part) => {
      history.replaceState({ own: 1 }, '', `/${part}`)
      expect(await createClient(directSession(options)).api.me()).toBeNull()
      expect([location.href, history.state]).toEqual([`${location.origin}/${part}`, { own: 1 }])
    },
  )

  test('removes a foreign token even from a path with two slashes', async () => {
    history.replaceState(null, '', `${location.origin}//evil.example/#id_token=x&state=y`)
    await expect(createClient(directSession(options)).api.me()).rejects.toMatchObject({ code: 'sign_in_failed' })
    expect(location.href).toBe(`${location.origin}//evil.example/`)
  })

  test('routers of the page get the address from before the sign-in', async () => {
    history.replaceState(null, '', '/shop#/basket')
    const { client } = await signIn()
    const seen: string[] = []
    const note = ({ type }: Event) => seen.push(`${type} ${location.pathname}${location.hash}`)
    for (const type of ['popstate', 'hashchange']) addEventListener(type, note)
    await client.api.me()
    for (const type of ['popstate', 'hashchange']) removeEventListener(type, note)
    expect(seen).toEqual(['popstate /shop#/basket', 'hashchange /shop#/basket'])
  })

  test('a service that is unreachable during the sign-in leaves the user signed out, and another sign-in works', async () => {
    const { client } = await signIn()
    const { fetch } = globalThis
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('offline')))
    await expect(client.api.me()).rejects.toMatchObject({ code: 'network_unreachable' })
    vi.stubGlobal('fetch', fetch)
    expect(await client.api.me()).toBeNull()
    expect(location.href).toBe(page)
    expect(await (await signIn()).client.api.me()).toMatchObject({ id: 'u1' })
  })

  test('a cancelled sign-in leaves the user signed out', async () => {
    const { client } = await signIn({ answer: { error: 'access_denied' } })
    expect(await client.api.me()).toBeNull()
    expect(new URL(location.href).searchParams.get('sign_in')).toBe('cancelled')
  })

  test('sends nothing of a session that has expired', async () => {
    const { client, session } = await signIn()
    await client.api.me()
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + HOUR_MS)
    clientKey = undefined
    expect(await client.api.me()).toBeNull()
    expect(calls.at(-1)?.headers.has('authorization')).toBe(false)
    expect(await session.readIdentity(client.config)).toBeNull()
  })

  test('signing out deletes key and secret, and still tells the service', async () => {
    const { client, session } = await signIn()
    await client.api.me()
    await client.api.logout()
    expect(calls.at(-1)?.headers.get('authorization')).toBe(`Session ${'ab'.repeat(32)}`)
    expect(await openKeyStore(API).list()).toEqual([])
    expect(await session.readIdentity(client.config)).toBeNull()
  })
})
