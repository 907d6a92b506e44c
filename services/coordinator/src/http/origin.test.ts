import { describe, expect, test } from 'vitest'
import { APP, createTestApp, OTHER_APP, signBody } from '../../test/http/testApp.ts'

const SESSION = '__Host-countersign-session'

async function createSignedIn() {
  const test = createTestApp()
  const user = test.browser()
  test.entropy.isDown = true
  await user.signIn()
  test.entropy.isDown = false
  const cookie = `${SESSION}=${user.jar.get(SESSION)}`
  const before = test.store.writes
  /** Everything that a call could have changed. */
  const effects = () => ({
    writes: test.store.writes - before,
    taken: test.entropy.taken,
    signings: test.signings.length,
    sessions: test.store.rows.sessions.size,
  })
  return { ...test, cookie, effects }
}

const untouched = { writes: 0, taken: 0, signings: 0, sessions: 1 }
const routes = ['/auth/logout', '/wallet/provision', '/sign/digest']
const contentTypes = [undefined, 'application/json', 'text/plain', 'application/x-www-form-urlencoded']

const foreignOrigins: [string, string | undefined][] = [
  ['no origin', undefined],
  ['null', 'null'],
  ['another site', 'https://evil.example'],
  ['the same host on http', 'http://app.example'],
  ['another port', 'https://app.example:8443'],
  ['the default port spelt out', 'https://app.example:443'],
  ['a longer host', 'https://app.example.evil.example'],
  ['a prefix', 'https://evilapp.example'],
  ['a subdomain', 'https://x.app.example'],
  ['a trailing slash', 'https://app.example/'],
  ['a trailing dot', 'https://app.example.'],
  ['upper case', 'https://APP.example'],
  ['a list', 'https://app.example, https://evil.example'],
  ['a user name', 'https://app.example@evil.example'],
  ['the service’s own, unless listed', 'https://api.example'],
  ['an empty one', ''],
]

describe('no side effect without an allowed origin (design §9)', () => {
  for (const path of routes) {
    for (const contentType of contentTypes) {
      for (const isEmpty of [true, false]) {
        test.each(foreignOrigins)(
          `${path} as ${contentType}, ${isEmpty ? 'empty' : 'with a body'}, from %s`,
          async (_, origin) => {
            const { request, cookie, effects } = await createSignedIn()
            const body = JSON.stringify(path === '/sign/digest' ? signBody : {})
            const response = await request(path, {
              method: 'POST',
              headers: {
                cookie,
                ...(origin === undefined ? {} : { origin }),
                ...(contentType === undefined ? {} : { 'content-type': contentType }),
              },
              ...(isEmpty ? {} : { body }),
            })
            expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
              403,
              'origin_not_allowed',
            ])
            expect(response.headers.get('access-control-allow-origin')).toBeNull()
            expect(effects()).toEqual(untouched)
          },
        )
      }
    }
  }

  test.each(
    ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'].flatMap((method) =>
      routes.map((path) => [method, path]),
    ),
  )('no other method gets there: %s %s', async (method = '', path = '') => {
    const { answer, cookie, effects } = await createSignedIn()
    expect((await answer(path, { method, headers: { cookie, origin: APP } })).status).toBe(405)
    expect(effects()).toEqual(untouched)
  })
})

describe('from an allowed origin', () => {
  test.each(routes.flatMap((path) => [APP, OTHER_APP].map((origin) => [path, origin])))(
    '%s from %s',
    async (path = '', origin = '') => {
      const test = createTestApp()
      const user = test.browser()
      await user.signIn()
      const response = await user.post(path, path === '/sign/digest' ? signBody : undefined, { origin })
      expect(response.status).toBe(200)
      expect(response.headers.get('access-control-allow-origin')).toBe(origin)
      expect(response.headers.get('access-control-allow-credentials')).toBe('true')
      expect(response.headers.get('vary')).toContain('Origin')
    },
  )

  test.each(['same-origin', 'same-site', 'cross-site', 'none'])('Sec-Fetch-Site: %s is ignored', async (site) => {
    const { request, cookie } = await createSignedIn()
    const headers = { cookie, origin: APP, 'sec-fetch-site': site }
    expect((await request('/wallet/provision', { method: 'POST', headers })).status).toBe(200)
  })

  const bodied = contentTypes.concat([
    'multipart/form-data',
    'application/problem+json',
    'text/json',
    'text/plain; application/json',
    'application/jsonx',
    'application/json, text/plain',
  ])
  test.each(bodied.filter((type) => type !== 'application/json'))('a body as %s is 415', async (contentType) => {
    const { request, cookie, effects } = await createSignedIn()
    for (const path of routes) {
      const headers = { cookie, origin: APP, ...(contentType === undefined ? {} : { 'content-type': contentType }) }
      const body = JSON.stringify(path === '/sign/digest' ? signBody : {})
      expect((await request(path, { method: 'POST', headers, body })).status).toBe(415)
    }
    expect(effects()).toEqual(untouched)
  })

  test.each(bodied)('accepts an empty body as %s', async (contentType) => {
    const { request, cookie } = await createSignedIn()
    const headers = { cookie, origin: APP, ...(contentType === undefined ? {} : { 'content-type': contentType }) }
    expect((await request('/wallet/provision', { method: 'POST', headers })).status).toBe(200)
  })

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON ;charset=utf-8'])(
    '%s is JSON',
    async (contentType) => {
      const { request, cookie } = await createSignedIn()
      const headers = { cookie, origin: APP, 'content-type': contentType }
      expect((await request('/wallet/provision', { method: 'POST', headers, body: '{}' })).status).toBe(200)
    },
  )
})

describe('without a cookie', () => {
  test('without a cookie a missing origin returns 401, and a foreign page still gets 403', async () => {
    const { request } = createTestApp()
    const post = (headers: Record<string, string>) => request('/auth/logout', { method: 'POST', headers })
    expect((await post({})).status).toBe(401)
    expect((await post({ 'sec-fetch-site': 'none' })).status).toBe(401)
    expect((await post({ 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await post({ 'sec-fetch-site': 'same-site' })).status).toBe(403)
    expect((await post({ origin: 'https://evil.example' })).status).toBe(403)
  })
})

describe('rejects reads that a foreign page causes, before they count', () => {
  const site = 'cross-site'
  const evil = 'https://evil.example'
  /** As browsers send them. */
  const planted: [string, Record<string, string>][] = [
    ['an image', { site, mode: 'no-cors', dest: 'image' }],
    ['a fetch that cannot read', { site, mode: 'no-cors', dest: 'empty' }],
    ['a fetch', { site, mode: 'cors', dest: 'empty', origin: evil }],
    ['a socket', { site, mode: 'websocket', dest: 'empty', origin: evil }],
    ['a frame', { site, mode: 'navigate', dest: 'iframe' }],
    ['an object', { site, mode: 'navigate', dest: 'object' }],
    ['a link that is fetched ahead', { site, mode: 'no-cors', dest: 'empty', purpose: 'prefetch' }],
    [
      'a page that is opened ahead',
      { site: 'none', mode: 'navigate', dest: 'document', purpose: 'prefetch;prerender' },
    ],
    [
      'a page of this service that has another opened ahead',
      { site: 'same-origin', mode: 'navigate', dest: 'document', purpose: 'prefetch;prerender' },
    ],
  ]
  const welcome: [string, Record<string, string>][] = [
    ['a page that is opened from another site', { site, mode: 'navigate', dest: 'document' }],
    ['a page that is opened by its address', { site: 'none', mode: 'navigate', dest: 'document' }],
    ['a file that is saved', { site, mode: 'navigate', dest: 'empty' }],
    ['a page of ours on another site', { site, mode: 'cors', dest: 'empty', origin: APP }],
    ['a page of ours on this site', { site: 'same-site', mode: 'cors', dest: 'empty', origin: OTHER_APP }],
    ['this service', { site: 'same-origin', mode: 'cors', dest: 'empty' }],
    [
      'a page of this service that is opened ahead',
      { site: 'same-origin', mode: 'cors', dest: 'empty', purpose: 'prefetch;prerender' },
    ],
    ['Node', { mode: 'cors' }],
    ['any other program', {}],
  ]
  const toHeaders = ({ site, mode, dest, purpose, origin }: Record<string, string>) => ({
    ...(site && { 'sec-fetch-site': site }),
    ...(mode && { 'sec-fetch-mode': mode }),
    ...(dest && { 'sec-fetch-dest': dest }),
    ...(purpose && { 'sec-purpose': purpose }),
    ...(origin && { origin }),
  })
  const one = { count: 1, seconds: 60 }
  const rateLimits = { sign: one, provision: one, auth: { count: 3, seconds: 60 }, proof: one }
  const reads: [string, number][] = [
    ['/auth/google', 302],
    ['/auth/google/callback', 400],
    ['/auth/me', 200],
    ['/wallet/me', 200],
    ['/wallet/transactions', 200],
    ['/vaults', 200],
  ]

  async function createVisited() {
    const test = createTestApp({ config: { rateLimits } })
    const user = test.browser()
    await user.signIn()
    const cookie = `${SESSION}=${user.jar.get(SESSION)}`
    return { ...test, read: (path: string, from: object) => test.request(path, { headers: { cookie, ...from } }) }
  }

  for (const [path, status] of reads) {
    test.each(planted)(`rejects GET ${path} by %s`, async (_, from) => {
      const { read, store } = await createVisited()
      const before = store.writes
      for (let count = 0; count < 3; count++) {
        const response = await read(path, toHeaders(from))
        expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
          403,
          'origin_not_allowed',
        ])
        expect(response.headers.get('ratelimit-remaining')).toBeNull()
      }
      expect([store.writes - before, (await read(path, {})).status]).toEqual([0, status])
    })

    test.each(welcome)(`answers GET ${path} by %s`, async (_, from) => {
      const { read } = await createVisited()
      expect((await read(path, toHeaders(from))).status).toBe(status)
    })
  }

  test('the form of a provider accepts navigations', async () => {
    const { request } = createTestApp({ config: { rateLimits } })
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const post = async (from: Record<string, string>) => {
      const headers = { ...type, ...toHeaders({ site, origin: evil, ...from }) }
      return (await request('/auth/google/form', { method: 'POST', body: 'state=x', headers })).status
    }
    for (let count = 0; count < 5; count++) {
      expect(await post({ mode: 'no-cors', dest: 'empty' })).toBe(403)
      expect(await post({ mode: 'navigate', dest: 'iframe' })).toBe(403)
    }
    expect(await post({ mode: 'navigate', dest: 'document' })).toBe(303)
  })

  test.each(planted)('public paths can be loaded by %s', async (_, from) => {
    const { request } = createTestApp()
    for (const path of ['/auth', '/health', '/health/ready', '/openapi.json', '/log']) {
      expect([path, (await request(path, { headers: toHeaders(from) })).status]).toEqual([path, 200])
    }
  })

  test('preflights are unaffected', async () => {
    const from = toHeaders({ site, mode: 'cors', dest: 'empty', origin: APP })
    const headers = { ...from, 'access-control-request-method': 'GET' }
    expect((await createTestApp().request('/auth/me', { method: 'OPTIONS', headers })).status).toBe(204)
  })
})

describe('CORS', () => {
  const preflight = (path: string, origin: string, method = 'POST') =>
    createTestApp().request(path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'content-type' },
    })

  test.each(routes)('preflight of %s from an allowed origin', async (path) => {
    const response = await preflight(path, APP)
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(response.headers.get('access-control-allow-origin')).toBe(APP)
    expect(response.headers.get('access-control-allow-credentials')).toBe('true')
    expect(response.headers.get('access-control-allow-headers')).toContain('content-type')
    expect(response.headers.get('access-control-allow-methods')).toBe('GET, POST')
    expect(response.headers.get('vary')).toContain('Origin')
  })

  test.each(routes.concat('/auth/me', '/wallet/me'))('rejects a preflight of %s from another origin', async (path) => {
    const response = await preflight(path, 'https://evil.example')
    expect(response.status).toBe(403)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  })

  test.each(['/proof/x', '/health', '/health/ready', '/health/attestation', '/openapi.json'])(
    'GET %s may be read from anywhere, without credentials',
    async (path) => {
      const { request } = createTestApp()
      for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, {}] as Record<string, string>[]) {
        const response = await request(path, { headers })
        expect(response.headers.get('access-control-allow-origin')).toBe('*')
        expect(response.headers.get('access-control-allow-credentials')).toBeNull()
        expect(response.headers.get('vary')).toContain('Origin')
      }
      expect((await preflight(path, 'https://evil.example', 'GET')).headers.get('access-control-allow-origin')).toBe(
        '*',
      )
      expect((await preflight(path, 'https://evil.example', 'POST')).status).toBe(403)
      const ours = await request(path, { headers: { origin: APP } })
      expect(ours.headers.get('access-control-allow-origin')).toBe(APP)
    },
  )

  test.each(['/auth/me', '/wallet/me', '/docs', '/auth/google', '/proofs', '/healthy', '/nope'])(
    'GET %s cannot be read from other origins',
    async (path) => {
      const response = await createTestApp().request(path, { headers: { origin: 'https://evil.example' } })
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
      expect(response.headers.get('vary')).toContain('Origin')
    },
  )

  test('allowed origins can read failures', async () => {
    const response = await createTestApp().request('/auth/me', { headers: { origin: APP } })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([401, APP])
  })
})
