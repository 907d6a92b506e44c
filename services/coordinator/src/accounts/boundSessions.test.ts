import { ECDH, hash } from 'node:crypto'
import type { EndpointResponse } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../../enclave/test/clientKey.ts'
import { APP, codeOf, createTestApp, signBody, signed } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const SESSION = '__Host-countersign-session'
const { clientKey } = createClient()
const otherKey = createClient().clientKey
const compressed = String(ECDH.convertKey(clientKey, 'prime256v1', 'hex', 'hex', 'compressed'))
const withKey = (key = clientKey) => `/auth/google?client_key=${key}`
/** Well-formed. Only the enclave checks whether it is valid. */
const stamp = { issuedMs: 1, signature: '77'.repeat(64) }
const typedData = {
  domain: { chainId: 1 },
  types: { Note: [{ name: 'text', type: 'string' }] },
  primaryType: 'Note',
  message: { text: 'hello' },
}
const calls = [
  ['/sign/digest', signBody],
  ['/sign/message', { message: '0x00' }],
  ['/sign/typed-data', typedData],
  ['/sign/authorization', { chainId: 31337, address: `0x${'ab'.repeat(20)}`, nonce: 3 }],
  ['/wallet/attest', {}],
] as const

async function setUp(path = withKey()) {
  const app = createTestApp()
  const user = app.browser()
  await user.signIn(path)
  return { ...app, user }
}
type User = Awaited<ReturnType<typeof setUp>>['user']
const getSession = async (user: User) =>
  (await (await user.get('/auth/session')).json()) as EndpointResponse<'GET /auth/session'>
const listSessions = async (user: User) =>
  ((await (await user.get('/auth/sessions')).json()) as EndpointResponse<'GET /auth/sessions'>).sessions
const isOpen = async (user: User) => (await user.get('/auth/me')).status === 200

describe('a sign-in with a browser key', () => {
  test('the nonce binds the key, and the enclave and the session get it', async () => {
    const { browser, google, store, enclave } = createTestApp()
    const user = browser()
    const { callback } = await user.start(withKey())
    const [[, loginSecret = ''] = []] = [...user.jar]
    const secretHash = hash('sha256', Buffer.from(loginSecret, 'hex'), 'buffer')
    const preimage = Buffer.concat([Buffer.from('countersign/login/v2\0'), secretHash, Buffer.from(clientKey, 'hex')])
    expect(google.started[0]?.nonce).toBe(hash('sha256', preimage, 'base64url'))
    expect([...store.rows.logins.values()]).toMatchObject([{ clientKey }])
    expect((await user.send(callback)).status).toBe(302)
    expect(enclave.opened).toEqual([{ idToken: expect.stringMatching(/^fake\./), loginSecret, clientKey }])
    expect([...store.rows.sessions.values()]).toMatchObject([{ clientKey }])
  })

  test.each<[string, string]>([
    ['an empty key', 'client_key='],
    ['a key of 64 bytes', `client_key=${clientKey.slice(0, -2)}`],
    ['a key of 66 bytes', `client_key=${clientKey}00`],
    ['upper-case hex', `client_key=${clientKey.toUpperCase()}`],
    ['a prefix', `client_key=0x${clientKey}`],
    ['a compressed key', `client_key=${compressed}`],
    ['a key in hybrid form', `client_key=06${clientKey.slice(2)}`],
    ['a point that is not on the curve', `client_key=04${'11'.repeat(64)}`],
    ['the point at infinity', `client_key=04${'00'.repeat(64)}`],
    ['two keys', `client_key=${clientKey}&client_key=${otherKey}`],
    ['the same key twice', `client_key=${clientKey}&client_key=${clientKey}`],
  ])('rejects %s, without a row or a cookie', async (_, query) => {
    const { request, store, google } = createTestApp()
    const response = await request(`/auth/google?${query}`)
    expect(await codeOf(response)).toBe('400 invalid_request')
    expect([store.writes, response.headers.getSetCookie(), google.started]).toEqual([0, [], []])
  })

  test.each([
    ['a link on another site', { 'sec-fetch-site': 'cross-site' }, 403],
    [
      'a link on another site that names itself',
      { 'sec-fetch-site': 'cross-site', referer: 'https://evil.example/' },
      403,
    ],
    ['an allowed app on another site', { 'sec-fetch-site': 'cross-site', referer: `${APP}/page` }, 302],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 302],
    ['an app without a browser', {}, 302],
  ])('a sign-in with a key from %s', async (_, headers, status) => {
    const { request, store } = createTestApp()
    const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    const response = await request(withKey(), { headers: { ...navigation, ...headers } })
    expect([response.status, store.rows.logins.size]).toEqual([status, status === 302 ? 1 : 0])
  })

  test.each<[string, string, string | undefined]>([
    ['another key', withKey(), otherKey],
    ['no key', withKey(), undefined],
    ['a key where there was none', '/auth/google', clientKey],
  ])('rejects the callback if the row in the database got %s', async (_, path, changed) => {
    const { browser, store, enclave, google } = createTestApp()
    const user = browser()
    const { callback } = await user.start(path)
    const { logins } = store.rows
    for (const [id, login] of logins) logins.set(id, { ...login, clientKey: changed })
    expect(await codeOf(await user.send(callback))).toBe('400 oauth_state_invalid')
    expect([store.rows.sessions.size, enclave.opened, google.finished]).toEqual([0, [], []])
  })

  test('an enclave that needs a key refuses a sign-in without one, and no session is left', async () => {
    const { browser, enclave, store } = createTestApp()
    const user = browser()
    enclave.failure = new CoordinatorError('session_not_bound', 'expected a client key')
    expect(await codeOf(await user.signIn('/auth/google'))).toBe('403 session_not_bound')
    expect([store.rows.sessions.size, store.rows.users.size, user.jar.size]).toEqual([0, 0, 0])
  })
})

describe('signing with a browser key', () => {
  test.each(calls)('%s without a stamp returns stamp_missing before a sample is used', async (path, body) => {
    const { user, signings } = await setUp()
    expect(await codeOf(await user.post(path, body))).toBe('403 stamp_missing')
    expect(signings).toEqual([])
  })

  test.each(calls)('%s passes the stamp to the enclave unchanged', async (path, body) => {
    const { user, signings } = await setUp()
    expect((await user.post(path, { ...body, stamp })).status).toBe(200)
    expect(signings).toMatchObject([{ stamp }])
  })

  test.each(calls)(
    '%s of a session without a key needs no stamp; the enclave checks one that is sent',
    async (path, body) => {
      const { user, signings } = await setUp('/auth/google')
      expect((await user.post(path, body)).status).toBe(200)
      expect((await user.post(path, { ...body, stamp })).status).toBe(200)
      expect(signings.map((job) => job.stamp)).toEqual([undefined, stamp])
    },
  )

  test.each(['stamp_invalid', 'stamp_time', 'stamp_missing'] as const)('returns the enclave’s %s', async (code) => {
    const refuse = async () => Promise.reject(new CoordinatorError(code, 'x'))
    const user = createTestApp({ deps: { sign: refuse } }).browser()
    await user.signIn(withKey())
    for (const [path, body] of calls)
      expect(await codeOf(await user.post(path, { ...body, stamp }))).toBe(`403 ${code}`)
  })

  test('an earlier signature needs a stamp too, but the enclave does not check it again', async () => {
    const { user, signings, store } = await setUp()
    const [wallet] = store.rows.wallets.values()
    const walletId = wallet?.id ?? ''
    store.rows.signed.set(`${walletId}/${signBody.digest}`, { walletId, digest: signBody.digest, ...signed })
    expect(await codeOf(await user.post('/sign/digest', signBody))).toBe('403 stamp_missing')
    expect(await (await user.post('/sign/digest', { ...signBody, stamp })).json()).toEqual(signed)
    expect(signings).toEqual([])
  })

  test('a row that lost its key still signs nothing: the grant has the key, too', async () => {
    const { user, signings, store } = await setUp()
    for (const [id, one] of store.rows.sessions) store.rows.sessions.set(id, { ...one, clientKey: undefined })
    // The coordinator passes the request on, and the enclave answers stamp_missing (see its app.test.ts).
    expect((await user.post('/sign/digest', signBody)).status).toBe(200)
    expect(signings).toMatchObject([{ grant: 'grant-1', stamp: undefined }])
  })
})

describe('GET /auth/session and GET /auth/sessions', () => {
  test('describe this session, with the service’s time', async () => {
    const { user, clock } = await setUp()
    const createdAt = new Date(clock.now()).toISOString()
    const expiresAt = new Date(clock.now() + 43_200_000).toISOString()
    clock.advance(5000)
    const time = new Date(clock.now()).toISOString()
    expect(await getSession(user)).toEqual({ kind: 'bound', clientKey, createdAt, expiresAt, time })
    await user.signIn()
    expect(await getSession(user)).toMatchObject({ kind: 'cookie', clientKey: null, createdAt: time, time })
  })

  test('list the user’s open sessions, newest first, without secrets', async () => {
    const { user, browser, clock, store } = await setUp()
    const [second, bob] = [browser(), browser()]
    clock.advance(1000)
    await second.signIn()
    await bob.signIn('/auth/other')
    const sessions = await listSessions(user)
    expect(sessions.map(({ kind, isCurrent }) => [kind, isCurrent])).toEqual([
      ['cookie', false],
      ['bound', true],
    ])
    expect(await listSessions(second)).toMatchObject([{ isCurrent: true }, { isCurrent: false }])
    expect(await listSessions(bob)).toHaveLength(1)
    const text = JSON.stringify(sessions)
    for (const one of store.rows.sessions.values()) expect(text).not.toContain(one.sidHash)
    for (const each of [user, second]) expect(text).not.toContain(each.jar.get(SESSION))
    expect(text).not.toContain('grant')
  })

  test('list no session that has expired or was idle too long', async () => {
    const { user, browser, clock } = await setUp()
    await browser().signIn()
    clock.advance(7_200_000 - 60_000)
    await getSession(user)
    expect(await listSessions(user)).toHaveLength(2)
    clock.advance(60_000)
    expect(await listSessions(user)).toMatchObject([{ isCurrent: true }])
  })

  test('need a session', async () => {
    const { browser } = createTestApp()
    for (const path of ['/auth/session', '/auth/sessions']) {
      expect(await codeOf(await browser().get(path))).toBe('401 not_authenticated')
    }
  })
})

describe('POST /auth/logout', () => {
  async function setUpThree() {
    const app = await setUp()
    const [second, bob] = [app.browser(), app.browser()]
    await second.signIn()
    await bob.signIn('/auth/other')
    const idOf = async (one: User) => (await listSessions(one)).find(({ isCurrent }) => isCurrent)?.id
    const areOpen = () => Promise.all([app.user, second, bob].map(isOpen))
    return { ...app, second, bob, idOf, areOpen }
  }

  test.each([undefined, {}])('with %j ends this session only', async (body) => {
    const { user, areOpen } = await setUpThree()
    expect(await (await user.post('/auth/logout', body)).json()).toEqual({ ok: true })
    expect(user.jar.has(SESSION)).toBe(false)
    expect(await areOpen()).toEqual([false, true, true])
  })

  test('ends another session by its id, and keeps this one and its cookie', async () => {
    const { user, second, idOf, areOpen } = await setUpThree()
    expect((await user.post('/auth/logout', { session: await idOf(second) })).status).toBe(200)
    expect(user.jar.has(SESSION)).toBe(true)
    expect(await areOpen()).toEqual([true, false, true])
  })

  test('ends this session by its own id', async () => {
    const { user, idOf, areOpen } = await setUpThree()
    expect((await user.post('/auth/logout', { session: await idOf(user) })).status).toBe(200)
    expect(user.jar.has(SESSION)).toBe(false)
    expect(await areOpen()).toEqual([false, true, true])
  })

  test('ends no session of another user, and does not say whether an id exists', async () => {
    const { user, bob, idOf, areOpen } = await setUpThree()
    for (const session of [await idOf(bob), '00'.repeat(8)]) {
      expect(await (await user.post('/auth/logout', { session })).json()).toEqual({ ok: true })
    }
    expect(await areOpen()).toEqual([true, true, true])
  })

  test.each([{ all: true }, { all: true, session: '00'.repeat(8) }])(
    'with %j ends all of the user’s sessions',
    async (body) => {
      const { user, areOpen } = await setUpThree()
      expect((await user.post('/auth/logout', body)).status).toBe(200)
      expect(user.jar.has(SESSION)).toBe(false)
      expect(await areOpen()).toEqual([false, false, true])
    },
  )

  test.each([
    null,
    [],
    'all',
    { all: false },
    { all: 'true' },
    { all: null },
    { session: '' },
    { session: '00'.repeat(7) },
    { session: 'AB'.repeat(8) },
    { session: '00'.repeat(32) },
    { session: null },
    { id: '00'.repeat(8) },
  ])('rejects %j and ends nothing', async (body) => {
    const { user, areOpen } = await setUpThree()
    expect(await codeOf(await user.post('/auth/logout', body))).toBe('400 invalid_request')
    expect(await areOpen()).toEqual([true, true, true])
  })
})
