import { describe, expect, test } from 'vitest'
import { APP, codeOf, createTestApp, type TestApp } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const SESSION = '__Host-countersign-session'
const CHOICE = '__Host-countersign-choice'
const meOf = async (user: ReturnType<TestApp['browser']>) => (await user.get('/auth/me')).json()

describe('GET /auth', () => {
  test('redirects browsers to the sign-in of the first provider and keeps the query', async () => {
    const app = createTestApp()
    const query = `?return_to=${encodeURIComponent('https://app.example/pay?x=1')}`
    const response = await app.request(`/auth${query}`, { headers: { accept: 'text/html,*/*;q=0.8' } })
    const { providers } = (await (await app.request('/auth')).json()) as { providers: { id: string }[] }
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe(`https://api.example/auth/${providers[0]?.id}${query}`)
    expect(response.headers.get('vary')).toBe('Accept, Origin')
    expect(response.headers.getSetCookie()).toEqual([])
  })

  test('lists the providers for any page, without their clients', async () => {
    const response = await createTestApp().request('/auth', { headers: { origin: 'https://anybody.example' } })
    const body = (await response.json()) as { providers: object[] }
    expect(body.providers.map((each) => Object.keys(each))).toEqual([
      ['id', 'name', 'icon'],
      ['id', 'name', 'icon'],
    ])
    expect(body.providers).toMatchObject([
      { id: 'google', name: 'provider.example' },
      { id: 'other', name: 'other-provider.example' },
    ])
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  })

  test('does not count against the sign-in limit of an address', async () => {
    const rateLimits = { sign: 'off', provision: 'off', proof: 'off', auth: { count: 1, seconds: 60 } } as const
    const { request } = createTestApp({ config: { rateLimits } })
    for (let index = 0; index < 3; index++) expect((await request('/auth')).status).toBe(200)
    expect((await request('/auth/google')).status).toBe(302)
  })
})

describe('two providers', () => {
  test('users with the same subject, name and e-mail address at two providers have two wallets', async () => {
    const { browser, google, other, store } = createTestApp()
    other.identity = google.identity
    const [one, two] = [browser(), browser()]
    await one.signIn('/auth/google')
    await two.signIn('/auth/other')
    expect(store.rows.users.size).toBe(2)
    expect(new Set([...store.rows.users.values()].map(({ kmsKeyId }) => kmsKeyId)).size).toBe(2)
    const wallets = await Promise.all([one, two].map(async (user) => (await user.get('/wallet/me')).json()))
    expect(wallets[0]).not.toEqual(wallets[1])
    expect(((await meOf(one)) as { id: string }).id).not.toBe(((await meOf(two)) as { id: string }).id)
  })

  test.each([
    ['/auth/google', '/auth/other'],
    ['/auth/other', '/auth/google'],
  ])('a sign-in started at %s cannot be completed at %s, and the attempt consumes it', async (from, to) => {
    const { browser, google, other, enclave, store } = createTestApp()
    const user = browser()
    const { callback, state } = await user.start(from)
    const cookie = [...user.jar].map((pair) => pair.join('=')).join('; ')
    // Mix-up (RFC 9700 §4.4): the code of one provider must never be sent to the other.
    expect(await codeOf(await user.send(`${to}/callback?code=good&state=${state}`))).toBe('400 oauth_state_invalid')
    expect(await codeOf(await user.send(callback, { headers: { cookie } }))).toBe('400 oauth_state_invalid')
    expect([google.finished, other.finished, enclave.opened, store.rows.sessions.size]).toEqual([[], [], [], 0])
  })
})

describe('a user who cancels at the provider', () => {
  const cancel = (callback: string) => callback.replace('code=good', 'error=access_denied&error_description=x')

  test('returns to the page with the outcome in the query and no session, and the sign-in is consumed', async () => {
    const { browser, store } = createTestApp()
    const user = browser()
    const { callback } = await user.start(`/auth/google?return_to=${encodeURIComponent(`${APP}/page?x=1#y`)}`)
    const response = await user.send(cancel(callback))
    expect([response.status, response.headers.get('location')]).toEqual([302, `${APP}/page?x=1&sign_in=cancelled#y`])
    expect([store.rows.sessions.size, user.jar.size]).toEqual([0, 0])
    expect(await codeOf(await user.send(callback))).toBe('400 oauth_state_invalid')
  })

  test('keeps the existing session', async () => {
    const user = createTestApp().browser()
    await user.signIn()
    await user.send(cancel((await user.start()).callback))
    expect((await user.get('/auth/me')).status).toBe(200)
  })

  test('does not see the outcome again at the next sign-in from that page', async () => {
    const user = createTestApp().browser()
    const page = encodeURIComponent(`${APP}/page?sign_in=cancelled&x=1`)
    const { callback } = await user.start(`/auth/google?return_to=${page}`)
    expect((await user.send(callback)).headers.get('location')).toBe(`${APP}/page?x=1`)
  })

  test('still gets oauth_state_invalid in another browser or without a cookie', async () => {
    const { browser, request } = createTestApp()
    const { callback } = await browser().start()
    expect(await codeOf(await request(cancel(callback)))).toBe('400 oauth_state_invalid')
  })
})

describe('a provider that fails', () => {
  const linesOf = ({ log }: TestApp) => log.lines.filter(({ level }) => level === 'warn')
  const line = { level: 'warn', msg: 'Could not sign a user in', provider: 'google' }

  test('is logged by name at the start and at the callback, with our own reason only', async () => {
    const test = createTestApp()
    const user = test.browser()
    const { callback } = await user.start()
    await user.get(callback.replace('code=good', 'error=invalid_scope&error_description=canary'), {
      'x-request-id': 'a',
    })
    const next = await user.start()
    await user.get(next.callback.replace('code=good', 'error=canary'), { 'x-request-id': 'b' })
    const last = await user.start()
    test.enclave.failure = new CoordinatorError('provider_unavailable', 'x', { details: 'no keys' })
    await user.get(last.callback, { 'x-request-id': 'c' })
    test.google.isDown = true
    await user.get('/auth/google?canary', { 'x-request-id': 'd' })
    expect(linesOf(test)).toEqual([
      { ...line, requestId: 'a', code: 'oauth_refused', reason: 'the provider returned invalid_scope' },
      { ...line, requestId: 'b', code: 'oauth_refused', reason: 'the provider returned an error' },
      { ...line, requestId: 'c', code: 'provider_unavailable', reason: 'no keys' },
      { ...line, requestId: 'd', code: 'provider_unavailable', reason: 'the provider is unreachable' },
    ])
  })

  test('does not log failures that a third party can cause without the provider', async () => {
    const test = createTestApp()
    const user = test.browser()
    const { callback } = await user.start()
    for (const path of [
      '/auth/nobody',
      '/auth/google?return_to=x',
      '/auth/google/callback?state=x&error=server_error',
    ]) {
      await test.request(path)
    }
    await user.send(callback.replace('good', 'bad'))
    expect(linesOf(test)).toEqual([])
  })
})

describe('after a sign-out', () => {
  test('the next sign-ins ask for the account until one succeeds', async () => {
    const { browser, google, other } = createTestApp()
    const user = browser()
    await user.signIn()
    await user.post('/auth/logout')
    expect([...user.jar.keys()]).toEqual([CHOICE])
    const { callback } = await user.start()
    await user.send(callback.replace('code=good', 'error=access_denied'))
    await user.signIn('/auth/other')
    expect([...user.jar.keys()]).toEqual([SESSION])
    await user.start()
    expect(google.started.map(({ mustChoose }) => mustChoose)).toEqual([false, true, false])
    expect(other.started.map(({ mustChoose }) => mustChoose)).toEqual([true])
  })

  test('asks for the account even if the session had already ended', async () => {
    const user = createTestApp().browser()
    expect(await codeOf(await user.post('/auth/logout'))).toBe('401 not_authenticated')
    expect([...user.jar.keys()]).toEqual([CHOICE])
  })

  test('a page of another site cannot set the cookie', async () => {
    const user = createTestApp().browser()
    const response = await user.post('/auth/logout', undefined, { origin: 'https://evil.example' })
    expect([await codeOf(response), user.jar.size]).toEqual(['403 origin_not_allowed', 0])
  })

  test.each([
    ['none', 'None'],
    ['lax', 'Lax'],
    // Otherwise navigations from other sites would not send it.
    ['strict', 'Lax'],
  ] as const)('the cookie is sent with the session’s cookie and with navigations: %s', async (cookieSameSite, text) => {
    const user = createTestApp({ config: { cookieSameSite } }).browser()
    const [line = ''] = (await user.post('/auth/logout')).headers.getSetCookie()
    expect(line).toBe(`${CHOICE}=select-account; Max-Age=2592000; Path=/; HttpOnly; SameSite=${text}; Secure`)
  })

  test('a successful sign-in clears the cookie even if the browser did not send it', async () => {
    const user = createTestApp({ config: { cookieSameSite: 'strict' } }).browser()
    await user.post('/auth/logout')
    const { callback } = await user.start()
    const cookie = [...user.jar].filter(([name]) => name !== CHOICE).map((pair) => pair.join('='))
    await user.get(callback, { cookie: cookie.join('; ') })
    expect([...user.jar.keys()]).toEqual([SESSION])
  })
})

describe('POST /auth/:provider/form', () => {
  const post = (test: Pick<TestApp, 'request'>, body: string, headers: Record<string, string> = {}) =>
    test.request('/auth/google/form', {
      method: 'POST',
      body,
      headers: {
        origin: 'https://appleid.apple.com',
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
    })

  test('redirects to the callback with the known fields, from any origin and without reading cookies', async () => {
    const test = createTestApp()
    const user = test.browser()
    const { state } = await user.start()
    const body = new URLSearchParams({ code: 'good', state: state ?? '', user: '{"name":"Eve"}', return_to: 'x' })
    const response = await post(test, body.toString())
    const location = `/auth/google/callback?code=good&state=${state}`
    expect([response.status, response.headers.get('location')]).toEqual([303, `https://api.example${location}`])
    expect(response.headers.getSetCookie()).toEqual([])
    expect((await user.get(location)).status).toBe(302)
  })

  test('has no effect in a browser that started no sign-in', async () => {
    const test = createTestApp()
    const { state } = await test.browser().start()
    const location = (await post(test, `code=good&state=${state}`)).headers.get('location') ?? ''
    expect(await codeOf(await test.browser().get(location.slice('https://api.example'.length)))).toBe(
      '400 oauth_state_invalid',
    )
  })

  test.each([
    ['text/plain', 'code=good', '415 unsupported_media_type'],
    ['application/json', '{}', '415 unsupported_media_type'],
    ['application/x-www-form-urlencoded', `code=${'x'.repeat(9000)}`, '400 invalid_request'],
    ['application/x-www-form-urlencoded', `x=${'x'.repeat(140_000)}`, '413 body_too_large'],
  ])('%s is refused where it is not a short form', async (type, body, expected) => {
    expect(await codeOf(await post(createTestApp(), body, { 'content-type': type }))).toBe(expected)
  })

  test('passes duplicate fields on, and the callback rejects them', async () => {
    const test = createTestApp()
    const location = (await post(test, 'state=a&state=b')).headers.get('location')
    expect(location).toBe('https://api.example/auth/google/callback?state=a&state=b')
  })

  test('is the only call that accepts other origins', async () => {
    const { request } = createTestApp()
    for (const path of ['/auth/logout', '/auth/google/form/x', '/auth//form', '/wallet/provision']) {
      const response = await request(path, { method: 'POST', headers: { origin: 'https://appleid.apple.com' } })
      expect([path, response.status]).toEqual([path, 403])
    }
  })
})
