import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { APP, codeOf, createTestApp, OTHER_APP, signBody } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const SESSION = '__Host-countersign-session'
const loginCookies = (jar: Map<string, string>) => [...jar.keys()].filter((name) => name.includes('-login-'))

describe('GET /auth/:provider (design §3.1)', () => {
  test('redirects to the provider with a state, a code challenge, and the hash of the login secret as the nonce', async () => {
    const { browser, google, store } = createTestApp()
    const user = browser()
    const { response, state } = await user.start()
    expect([response.status, response.headers.get('location')]).toEqual([
      302,
      expect.stringMatching(/^https:\/\/provider\.example\/authorize\?/),
    ])
    const [started] = google.started
    const [name = ''] = loginCookies(user.jar)
    const loginSecret = Buffer.from(user.jar.get(name) ?? '', 'hex')
    expect(loginSecret.length).toBe(32)
    const preimage = Buffer.concat([Buffer.from('countersign/login/v1\0'), loginSecret])
    expect(started?.nonce).toBe(hash('sha256', preimage, 'base64url'))
    expect(started?.state).toBe(state)
    expect(started?.codeVerifier).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(name).toBe(`__Host-countersign-login-${hash('sha256', state ?? '', 'hex').slice(0, 16)}`)
    const [login] = store.rows.logins.values()
    expect(JSON.stringify(login)).not.toContain(loginSecret.toString('hex'))
    expect(JSON.stringify(login)).not.toContain(state)
  })

  test('sets an HttpOnly, Lax and Secure login cookie for 10 minutes', async () => {
    const { response } = await createTestApp().browser().start()
    const [cookie = ''] = response.headers.getSetCookie()
    expect(cookie.split('; ').slice(1)).toEqual(['Max-Age=600', 'Path=/', 'HttpOnly', 'SameSite=Lax', 'Secure'])
  })

  test('creates new secrets for each sign-in', async () => {
    const { browser, google } = createTestApp()
    for (let index = 0; index < 5; index++) await browser().start()
    const all = google.started.flatMap(({ state, nonce, codeVerifier }) => [state, nonce, codeVerifier])
    expect(new Set(all).size).toBe(15)
  })

  test('returns 404 for an unknown provider, and provider_unavailable without a row for one that is down', async () => {
    const { request, google, store, browser } = createTestApp()
    expect(await codeOf(await request('/auth/nobody'))).toBe('404 not_found')
    google.isDown = true
    expect(await codeOf(await request('/auth/google'))).toBe('503 provider_unavailable')
    expect(store.rows.logins.size).toBe(0)
    expect((await browser().signIn('/auth/other')).status).toBe(302)
  })

  test.each(['__proto__', 'constructor', 'toString', 'Google', 'google%20', '..%2fgoogle'])(
    'returns 404 for the provider %s',
    async (provider) => {
      expect((await createTestApp().request(`/auth/${provider}`)).status).toBe(404)
    },
  )

  test('clears the login cookies of a browser with too many unfinished sign-ins', async () => {
    const user = createTestApp().browser()
    for (let index = 0; index < 40; index++) await user.start()
    expect(loginCookies(user.jar).length).toBeLessThanOrEqual(9)
    expect((await user.signIn()).status).toBe(302)
  })
})

describe('return_to', () => {
  const start = (query: string) => createTestApp().browser().start(`/auth/google${query}`)

  test.each([
    ['', APP],
    [`?return_to=${encodeURIComponent(`${APP}/page?x=1#y`)}`, `${APP}/page?x=1#y`],
    [`?return_to=${encodeURIComponent(OTHER_APP)}`, `${OTHER_APP}/`],
  ])('%s returns to %s', async (query, expected) => {
    const user = createTestApp().browser()
    const { callback } = await user.start(`/auth/google${query}`)
    expect((await user.send(callback)).headers.get('location')).toBe(expected)
  })

  test('a page that was changed in the database is not gone to', async () => {
    const test = createTestApp()
    const user = test.browser()
    const { callback } = await user.start('/auth/google')
    const { logins } = test.store.rows
    for (const [id, login] of logins) logins.set(id, { ...login, returnTo: 'https://evil.example/' })
    const response = await user.send(callback)
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
    expect(test.store.rows.sessions.size).toBe(0)
  })

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/relative',
    '',
    'https://app.example.evil.example',
    'https://app.example@evil.example',
    'https://evil.example\\@app.example',
    'https://app.example:8443',
    'http://app.example',
    'https://user:pass@app.example',
    'https://app.example.',
    'https://xapp.example',
    'blob:https://app.example/1234',
    'javascript:alert(1)//https://app.example',
    'data:text/html,https://app.example',
    'filesystem:https://app.example/x',
    'https:\\\\evil.example',
    `https://app.example/${'a'.repeat(2048)}`,
    'null',
  ])('%s is refused, with no row and no cookie', async (target) => {
    const test = createTestApp()
    const response = await test.request(`/auth/google?return_to=${encodeURIComponent(target)}`)
    expect(await codeOf(response)).toBe('400 invalid_request')
    expect([test.store.writes, response.headers.getSetCookie()]).toEqual([0, []])
  })

  test.each([
    ['what is too long', `${APP}/${'a'.repeat(2048)}`],
    ['what the parser makes too long, which the callback would refuse', `${APP}/${'ä'.repeat(1024)}`],
  ])('rejects %s at the start and names the length limit if it applies', async (_, target) => {
    const response = await createTestApp().request(`/auth/google?return_to=${encodeURIComponent(target)}`)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      detail: 'return_to is longer than 2048 characters',
    })
  })

  test('rejects duplicates', async () => {
    const pair = [APP, 'https://evil.example'].map((url) => `return_to=${encodeURIComponent(url)}`)
    for (const query of [pair.join('&'), pair.toReversed().join('&')]) {
      expect((await start(`?${query}`)).response.status).toBe(400)
    }
  })

  test('returns the parsed URL, so that browsers see the host that was compared', async () => {
    const user = createTestApp().browser()
    const target = 'https://app.example\\@evil.example/\t\r\nx'
    const { callback } = await user.start(`/auth/google?return_to=${encodeURIComponent(target)}`)
    const location = (await user.send(callback)).headers.get('location') ?? ''
    expect([new URL(location).origin, location]).toEqual([APP, 'https://app.example/@evil.example/x'])
  })
})

describe('GET /auth/:provider/callback (design §3.2, §3.3)', () => {
  test('the session cookie contains only the enclave’s secret, and the login cookie is cleared', async () => {
    const { browser, store, enclave } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    const [[, loginSecret] = []] = [...user.jar]
    const response = await user.send(callback)
    expect([response.status, response.headers.get('location')]).toEqual([302, APP])
    const set = response.headers.getSetCookie().find((line) => line.startsWith(SESSION)) ?? ''
    expect(set.split('; ').slice(1)).toEqual(['Max-Age=43200', 'Path=/', 'HttpOnly', 'SameSite=None', 'Secure'])
    expect([...user.jar.keys()]).toEqual([SESSION])
    const sid = user.jar.get(SESSION) ?? ''
    expect(enclave.opened).toEqual([{ idToken: expect.stringMatching(/^fake\./), loginSecret }])
    const [session] = store.rows.sessions.values()
    expect(session).toMatchObject({ sidHash: hash('sha256', Buffer.from(sid, 'hex'), 'hex'), grant: 'grant-1' })
    expect(JSON.stringify([...store.rows.sessions.values(), ...store.rows.users.values()])).not.toContain(sid)
  })

  test.each([
    ['http://localhost:8080', 'lax', 'countersign-session', ['Path=/', 'HttpOnly', 'SameSite=Lax']],
    ['https://api.example', 'lax', SESSION, ['Path=/', 'HttpOnly', 'SameSite=Lax', 'Secure']],
    ['https://api.example', 'none', SESSION, ['Path=/', 'HttpOnly', 'SameSite=None', 'Secure']],
  ] as const)('at %s with %s the cookie is %s; %j', async (publicUrl, cookieSameSite, name, attributes) => {
    const user = createTestApp({ config: { publicUrl, cookieSameSite } }).browser()
    const response = await user.signIn()
    const set = response.headers.getSetCookie().find((line) => line.startsWith(`${name}=`)) ?? ''
    expect(set.split('; ').slice(2)).toEqual(attributes)
    expect((await user.get('/auth/me')).status).toBe(200)
  })

  test('stores the key id from the enclave, and identifies users by issuer and subject', async () => {
    const { browser, store, google } = createTestApp()
    await browser().signIn()
    google.identity = { ...google.identity, email: 'new@mail.example', name: null }
    const second = browser()
    await second.signIn()
    expect(await (await second.get('/auth/me')).json()).toMatchObject({ email: 'new@mail.example', name: null })
    const [session] = store.rows.sessions.values()
    expect([...store.rows.users.values()]).toMatchObject([{ subject: 'alice', kmsKeyId: session?.keyId }])
    google.identity = { ...google.identity, subject: 'mallory' }
    await browser().signIn()
    expect([store.rows.users.size, store.rows.wallets.size]).toEqual([2, 2])
  })

  test('rejects a user whose key id from the enclave has changed', async () => {
    const { browser, store } = createTestApp()
    await browser().signIn()
    for (const [key, user] of store.rows.users) store.rows.users.set(key, { ...user, kmsKeyId: 'ff'.repeat(16) })
    expect(await codeOf(await browser().signIn())).toBe('403 key_binding_mismatch')
    expect(store.rows.sessions.size).toBe(1)
  })

  test('two tabs can sign in at the same time', async () => {
    const user = createTestApp().browser()
    const [one, two] = [
      await user.start(`/auth/google?return_to=${APP}/1`),
      await user.start(`/auth/google?return_to=${APP}/2`),
    ]
    expect(loginCookies(user.jar).length).toBe(2)
    expect((await user.send(one.callback)).headers.get('location')).toBe(`${APP}/1`)
    expect((await user.send(two.callback)).headers.get('location')).toBe(`${APP}/2`)
    expect([...user.jar.keys()]).toEqual([SESSION])
  })

  test('signing in again creates a new secret and ends the browser’s earlier session', async () => {
    const { browser, request, store } = createTestApp()
    const user = browser()
    await user.signIn()
    const old = user.jar.get(SESSION)
    await user.signIn()
    expect(user.jar.get(SESSION)).not.toBe(old)
    expect(store.rows.sessions.size).toBe(1)
    const response = await request('/auth/me', { headers: { cookie: `${SESSION}=${old}` } })
    expect(await codeOf(response)).toBe('401 not_authenticated')
  })

  test('a session cookie planted before the sign-in is useless afterwards', async () => {
    const { browser, request } = createTestApp()
    const planted = 'ab'.repeat(32)
    const victim = browser()
    victim.jar.set(SESSION, planted)
    await victim.signIn()
    expect((await victim.get('/auth/me')).status).toBe(200)
    const response = await request('/auth/me', { headers: { cookie: `${SESSION}=${planted}` } })
    expect(response.status).toBe(401)
  })

  test('accepts a callback once, even among concurrent ones', async () => {
    const { browser, store, enclave, request } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    const cookie = [...user.jar].map((pair) => pair.join('=')).join('; ')
    const answers = await Promise.all(Array.from({ length: 20 }, () => request(callback, { headers: { cookie } })))
    expect(answers.filter(({ status }) => status === 302).length).toBe(1)
    expect([store.rows.sessions.size, enclave.opened.length]).toEqual([1, 1])
    expect(await codeOf(await request(callback, { headers: { cookie } }))).toBe('400 oauth_state_invalid')
  })

  test('expires after 10 minutes', async () => {
    const { browser, clock, enclave } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    clock.advance(600_000)
    expect(await codeOf(await user.send(callback))).toBe('400 oauth_state_invalid')
    expect(enclave.opened).toEqual([])
  })

  describe('rejects a state without its cookie', () => {
    const refusals: [
      string,
      (parts: { state: string; name: string; value: string; other: string }) => [string, string],
    ][] = [
      ['no state', ({ name, value }) => ['code=good', `${name}=${value}`]],
      ['an empty state', ({ name, value }) => ['code=good&state=', `${name}=${value}`]],
      ['another state', ({ name, value, other }) => [`code=good&state=${other}`, `${name}=${value}`]],
      [
        'a state with a byte changed',
        ({ state, name, value }) => [
          `code=good&state=${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}`,
          `${name}=${value}`,
        ],
      ],
      [
        'two states',
        ({ state, other, name, value }) => [`code=good&state=${state}&state=${other}`, `${name}=${value}`],
      ],
      ['no cookie (another browser)', ({ state }) => [`code=good&state=${state}`, '']],
      ['an empty cookie', ({ state, name }) => [`code=good&state=${state}`, `${name}=`]],
      [
        'the attacker’s secret under the right name',
        ({ state, name }) => [`code=good&state=${state}`, `${name}=${'ab'.repeat(32)}`],
      ],
      [
        'two cookies of the name',
        ({ state, name, value }) => [`code=good&state=${state}`, `${name}=${value}; ${name}=${'ab'.repeat(32)}`],
      ],
      [
        'a cookie without the prefix',
        ({ state, name, value }) => [`code=good&state=${state}`, `${name.slice(7)}=${value}`],
      ],
    ]
    test.each(refusals)('rejects %s', async (_, change) => {
      const { browser, request, store, enclave, google } = createTestApp()
      const user = browser()
      const { state } = await user.start()
      const { state: other } = await browser().start()
      const [[name = '', value = ''] = []] = [...user.jar]
      const [query, cookie] = change({ state: state ?? '', name, value, other: other ?? '' })
      const response = await request(`/auth/google/callback?${query}`, { headers: cookie === '' ? {} : { cookie } })
      expect(await codeOf(response)).toBe('400 oauth_state_invalid')
      expect([store.rows.sessions.size, enclave.opened, google.finished]).toEqual([0, [], []])
    })

    test('a third party without the cookie cannot consume the sign-in', async () => {
      const { browser, request } = createTestApp()
      const user = browser()
      const { callback } = await user.start()
      expect((await request(callback)).status).toBe(400)
      expect((await user.send(callback)).status).toBe(302)
    })
  })

  test('passes on only the registered error code of the provider, and consumes the sign-in', async () => {
    const { browser, google } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    const refused = callback.replace('code=good', 'error=invalid_scope&error_description=secret-text')
    const response = await user.send(refused)
    const text = await response.text()
    expect([response.status, text.includes('oauth_refused'), text.includes('invalid_scope')]).toEqual([400, true, true])
    expect([text.includes('secret-text'), loginCookies(user.jar), google.finished.length]).toEqual([false, [], 1])
    expect(await codeOf(await user.send(callback))).toBe('400 oauth_state_invalid')
  })

  test('returns oauth_exchange_failed without a session for a rejected code or a missing e-mail address', async () => {
    const { browser, store, enclave, google } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    expect(await codeOf(await user.send(callback.replace('good', 'bad')))).toBe('400 oauth_exchange_failed')
    google.identity = { ...google.identity, email: '' }
    expect(await codeOf(await user.signIn())).toBe('400 oauth_exchange_failed')
    expect([store.rows.sessions.size, enclave.opened, user.jar.size]).toEqual([0, [], 0])
  })

  test('sends our public address to the provider, regardless of Host', async () => {
    const { browser, google } = createTestApp()
    const user = browser()
    const { callback } = await user.start()
    await user.send(callback, { headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' } })
    expect(google.finished[0]?.callbackUrl.href).toMatch(
      /^https:\/\/api\.example\/auth\/google\/callback\?code=good&state=/,
    )
  })

  test.each([
    ['enclave_unavailable', 503],
    ['collateral_stale', 503],
    ['grant_invalid', 403],
  ] as const)(
    'creates neither session nor user if the enclave returns %s, and a new sign-in works',
    async (code, status) => {
      const { browser, enclave, store } = createTestApp()
      const user = browser()
      enclave.failure = new CoordinatorError(code, 'x')
      expect(await codeOf(await user.signIn())).toBe(`${status} ${code}`)
      expect([store.rows.sessions.size, store.rows.users.size, user.jar.size]).toEqual([0, 0, 0])
      enclave.failure = undefined
      expect((await user.signIn()).status).toBe(302)
    },
  )

  test('a failed sign-in keeps the existing session', async () => {
    const { browser, enclave } = createTestApp()
    const user = browser()
    await user.signIn()
    enclave.failure = new CoordinatorError('enclave_unavailable', 'x')
    await user.signIn()
    expect((await user.get('/auth/me')).status).toBe(200)
  })

  test('without entropy the sign-in succeeds, and the wallet is created later', async () => {
    const { browser, entropy, log } = createTestApp()
    entropy.isDown = true
    const user = browser()
    expect((await user.signIn()).status).toBe(302)
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', code: 'entropy_unavailable' }))
    entropy.isDown = false
    expect((await user.post('/wallet/provision')).status).toBe(200)
  })
})

describe('logs', () => {
  test('contain no secret, token, code or e-mail address', async () => {
    const test = createTestApp()
    const user = test.browser()
    const { callback, state } = await user.start(`/auth/google?return_to=${APP}/canary-page`)
    const [[, loginSecret = 'none'] = []] = [...user.jar]
    await user.send(callback)
    await user.get('/auth/me')
    await user.post('/sign/digest', signBody)
    await user.post('/sign/digest', { digest: 'canary-digest' })
    await user.get('/proof/canary-slug')
    const sid = user.jar.get(SESSION) ?? 'none'
    test.enclave.failure = new Error('canary-inner alice@mail.example')
    await user.signIn()
    test.entropy.isDown = true
    await user.post('/auth/logout')
    await user.send(callback.replace('good', 'canary-code'))
    const text = JSON.stringify(test.log.lines)
    const canaries = [loginSecret, sid, state ?? 'none', 'grant-1', 'fake.', 'alice', 'mail.example', 'canary', 'code=']
    expect(canaries.filter((canary) => text.includes(canary))).toEqual([])
    expect(canaries).not.toContain('none')
    expect(test.log.lines.length).toBeGreaterThan(9)
  })
})
