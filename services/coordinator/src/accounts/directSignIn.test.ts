import { hash } from 'node:crypto'
import type { EndpointResponse } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../../enclave/test/clientKey.ts'
import { API, APP, codeOf, createTestApp, signBody, signed } from '../../test/http/testApp.ts'
import { createFakeProvider } from '../../test/ports.ts'
import { CoordinatorError } from '../errors.ts'
import type { DirectProvider, IdentityProvider } from './oidc.ts'
import { drawIcon } from './readProviders.ts'

const ISSUER = 'https://accounts.example'
const SESSION = '__Host-countersign-session'
const { clientKey } = createClient()
const loginSecret = '15'.repeat(32)
const stamp = { issuedMs: 1, signature: '77'.repeat(64) }
const direct: DirectProvider = { name: 'Page', icon: drawIcon('Page'), direct: { issuer: ISSUER, clientId: 'page' } }
const claims = { iss: ISSUER, sub: 'alice', email: 'alice@mail.example', name: 'Alice' }
/** Only the enclave verifies tokens. The fake one reads `issuer` and `subject`. */
function toToken({ iss, sub, ...rest }: Record<string, unknown> = claims): string {
  const payload = { iss, sub, issuer: iss, subject: sub, ...rest }
  return `head.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.signature`
}
const body = { idToken: toToken(), loginSecret, clientKey }

function setUp(changes: Parameters<typeof createTestApp>[0] = {}) {
  const google = createFakeProvider({ subject: 'alice', email: 'alice@mail.example', name: 'Alice' })
  const providers = new Map<string, DirectProvider | IdentityProvider>([
    ['page', direct],
    ['google', google],
  ])
  const app = createTestApp({ ...changes, deps: { providers, ...changes.deps } })
  const user = app.browser()
  const open = (given: unknown = body, headers: Record<string, string> = {}) =>
    user.post('/auth/page/token', given, headers)
  const signIn = async () => {
    const opened = (await (await open()).json()) as EndpointResponse<'POST /auth/:provider/token'>
    return { ...opened, header: { authorization: `Session ${opened.secret}` } }
  }
  return { ...app, user, open, signIn }
}

describe('POST /auth/:provider/token', () => {
  test('opens a session whose secret is only in the response, and sets no cookie', async () => {
    const { open, enclave, store, clock, user } = setUp()
    const response = await open()
    expect([response.status, response.headers.getSetCookie(), user.jar.size]).toEqual([200, [], 0])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const { secret, expiresAt } = (await response.json()) as EndpointResponse<'POST /auth/:provider/token'>
    expect(expiresAt).toBe(new Date(clock.now() + 43_200_000).toISOString())
    expect(enclave.opened).toEqual([body])
    const sidHash = hash('sha256', Buffer.from(secret, 'hex'), 'hex')
    expect([...store.rows.sessions.values()]).toMatchObject([{ sidHash, clientKey }])
    expect([...store.rows.users.values()]).toMatchObject([
      { issuer: ISSUER, subject: 'alice', email: 'alice@mail.example', name: 'Alice' },
    ])
    expect(store.rows.wallets.size).toBe(1)
  })

  test('signs with the header, and needs a stamp', async () => {
    const { signIn, user, signings } = setUp()
    const { header } = await signIn()
    expect(await codeOf(await user.post('/sign/digest', signBody, header))).toBe('403 stamp_missing')
    const response = await user.post('/sign/digest', { ...signBody, stamp }, header)
    expect([response.status, await response.json()]).toEqual([200, signed])
    expect(signings).toMatchObject([{ stamp, grant: 'grant-1' }])
    expect(await (await user.get('/auth/session', header)).json()).toMatchObject({ kind: 'bound', clientKey })
    for (const path of ['/auth/me', '/wallet/me', '/wallet/transactions', '/vaults', '/auth/sessions']) {
      expect((await user.get(path, header)).status).toBe(200)
      expect(await codeOf(await user.get(path))).toBe('401 not_authenticated')
    }
  })

  test('the header overrides a cookie, and a bad header is 401 even with a good cookie', async () => {
    const { signIn, user, signings } = setUp()
    const { header, secret } = await signIn()
    await user.signIn()
    expect(await (await user.get('/auth/session')).json()).toMatchObject({ kind: 'cookie' })
    expect(await (await user.get('/auth/session', header)).json()).toMatchObject({ kind: 'bound' })
    const bad = ['', 'Session', `Bearer ${secret}`, `Session ${secret}x`, `Session ${'00'.repeat(32)}`, secret]
    for (const authorization of bad) {
      expect(await codeOf(await user.get('/auth/me', { authorization }))).toBe('401 not_authenticated')
      const response = await user.post('/sign/digest', signBody, { authorization })
      expect(await codeOf(response)).toBe('401 not_authenticated')
    }
    expect(signings).toEqual([])
    expect((await user.get('/auth/me')).status).toBe(200)
  })

  test('signing out with the header ends this session, and neither ends nor clears the one in the cookie', async () => {
    const { signIn, user } = setUp()
    const { header } = await signIn()
    await user.signIn()
    expect((await user.post('/auth/logout', undefined, header)).status).toBe(200)
    expect(await codeOf(await user.get('/auth/me', header))).toBe('401 not_authenticated')
    expect(user.jar.has(SESSION)).toBe(true)
    expect((await user.get('/auth/me')).status).toBe(200)
  })

  test('expires like a session in a cookie', async () => {
    const { signIn, user, clock } = setUp()
    const { header } = await signIn()
    clock.advance(7_200_000)
    expect(await codeOf(await user.get('/auth/me', header))).toBe('401 session_expired')
  })

  test.each<[string, string]>([
    ['another issuer', toToken({ ...claims, iss: 'https://provider.example' })],
    ['the issuer with a slash', toToken({ ...claims, iss: `${ISSUER}/` })],
    ['no issuer', toToken({ ...claims, iss: undefined })],
    ['an issuer that is a list', toToken({ ...claims, iss: [ISSUER] })],
    ['no subject', toToken({ ...claims, sub: undefined })],
    ['a subject that is a number', toToken({ ...claims, sub: 7 })],
    ['no e-mail address', toToken({ ...claims, email: undefined })],
    ['an empty e-mail address', toToken({ ...claims, email: '' })],
    ['one part', 'token'],
    ['no text', ''],
    ['claims that are not JSON', `head.${Buffer.from('claims').toString('base64url')}.signature`],
    ['claims of null', `head.${Buffer.from('null').toString('base64url')}.signature`],
    ['claims that are a list', `head.${Buffer.from('[]').toString('base64url')}.signature`],
  ])('rejects a token with %s before the enclave is called', async (_, idToken) => {
    const { open, enclave, store } = setUp()
    const response = await open({ ...body, idToken })
    expect(await codeOf(response)).toBe('400 oauth_exchange_failed')
    expect([enclave.opened, store.writes]).toEqual([[], 0])
  })

  test.each([
    ['oauth_exchange_failed', 400],
    ['session_not_bound', 403],
    ['provider_unavailable', 503],
    ['enclave_unavailable', 503],
    ['collateral_stale', 503],
    ['log_unavailable', 503],
  ] as const)('stores nothing if the enclave refuses with %s', async (code, status) => {
    const { open, enclave, store } = setUp()
    enclave.failure = new CoordinatorError(code, 'x')
    expect(await codeOf(await open())).toBe(`${status} ${code}`)
    expect(store.writes).toBe(0)
  })

  test.each([
    ['subject', { issuer: ISSUER, subject: 'bob' }],
    ['issuer', { issuer: 'https://provider.example', subject: 'alice' }],
  ])('stores nothing if the enclave opens the session of another %s', async (_, other) => {
    const { open, store } = setUp()
    const idToken = toToken({ ...claims, ...other })
    expect(await codeOf(await open({ ...body, idToken }))).toBe('502 attestation_invalid')
    expect(store.writes).toBe(0)
  })

  test('rejects a user whose key id from the enclave has changed', async () => {
    const { open, store } = setUp()
    await open()
    for (const [key, user] of store.rows.users) store.rows.users.set(key, { ...user, kmsKeyId: 'ff'.repeat(16) })
    expect(await codeOf(await open())).toBe('403 key_binding_mismatch')
    expect(store.rows.sessions.size).toBe(1)
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no key', { idToken: body.idToken, loginSecret }],
    ['no token', { loginSecret, clientKey }],
    ['no login secret', { idToken: body.idToken, clientKey }],
    ['a token that is not text', { ...body, idToken: 7 }],
    ['a short login secret', { ...body, loginSecret: '15'.repeat(31) }],
    ['a login secret in upper case', { ...body, loginSecret: 'AB'.repeat(32) }],
    ['a key of null', { ...body, clientKey: null }],
    ['a key that is not on the curve', { ...body, clientKey: `04${'11'.repeat(64)}` }],
    ['a key in hybrid form', { ...body, clientKey: `06${clientKey.slice(2)}` }],
    ['a key in upper case', { ...body, clientKey: clientKey.toUpperCase() }],
    ['a member too many', { ...body, nonce: '' }],
  ])('rejects a body with %s', async (_, given) => {
    const { user, enclave, store } = setUp()
    expect(await codeOf(await user.post('/auth/page/token', given))).toBe('400 invalid_request')
    expect([enclave.opened, store.writes]).toEqual([[], 0])
  })

  test('is only for providers of direct sign-in', async () => {
    const { user, enclave } = setUp()
    for (const id of ['google', 'nobody', '__proto__']) {
      expect(await codeOf(await user.post(`/auth/${id}/token`, body))).toBe('404 not_found')
    }
    expect(enclave.opened).toEqual([])
  })

  test('is only for allowed origins, and counts against the limit of sign-ins', async () => {
    const { open, enclave } = setUp({
      config: { rateLimits: { sign: 'off', provision: 'off', auth: { count: 1, seconds: 600 }, proof: 'off' } },
    })
    expect(await codeOf(await open(body, { origin: 'https://evil.example' }))).toBe('403 origin_not_allowed')
    expect(enclave.opened).toEqual([])
    expect((await open()).status).toBe(200)
    expect(await codeOf(await open())).toBe('429 rate_limited')
  })

  test('logs neither the token nor the secrets', async () => {
    const { signIn, user, log, open } = setUp()
    const { header, secret } = await signIn()
    await user.get('/auth/me', header)
    await open({ ...body, idToken: 'canary' })
    const text = JSON.stringify(log.lines)
    for (const each of [secret, loginSecret, body.idToken, 'alice', 'canary']) expect(text).not.toContain(each)
    expect(log.lines.length).toBeGreaterThan(2)
  })
})

describe('a provider of direct sign-in', () => {
  test('is listed with its issuer and client, for the page to build the authorization URL', async () => {
    const { user } = setUp()
    const { providers } = (await (await user.get('/auth')).json()) as EndpointResponse<'GET /auth'>
    expect(providers).toMatchObject([{ id: 'page', direct: { issuer: ISSUER, clientId: 'page' } }, { id: 'google' }])
    expect(providers[1]).not.toHaveProperty('direct')
  })

  test('has no sign-in through the service', async () => {
    const { user, enclave } = setUp()
    expect(await codeOf(await user.get('/auth/page'))).toBe('404 not_found')
    expect(await codeOf(await user.get('/auth/page/callback?state=x&code=good'))).toBe('404 not_found')
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'state=x' }
    expect(await codeOf(await user.send('/auth/page/form', form))).toBe('404 not_found')
    expect(enclave.opened).toEqual([])
  })

  test('is not where GET /auth redirects browsers', async () => {
    const accept = 'text/html'
    const both = await setUp().user.get('/auth', { accept })
    expect([both.status, both.headers.get('location')]).toEqual([302, `${API}/auth/google`])
    const alone = await setUp({ deps: { providers: new Map([['page', direct]]) } }).user.get('/auth', { accept })
    expect(alone.status).toBe(200)
  })

  test('pages may send the header: the preflight allows it', async () => {
    const { request } = setUp()
    const headers = {
      origin: APP,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    }
    const response = await request('/sign/digest', { method: 'OPTIONS', headers })
    expect(response.headers.get('access-control-allow-headers')?.split(', ')).toContain('authorization')
  })
})
