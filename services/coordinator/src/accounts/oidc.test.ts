import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import { createOidcProvider, type OidcProviderParameters } from './oidc.ts'
import { getPreset } from './providers.ts'

const ISSUER = 'https://issuer.example'
const REDIRECT = 'https://api.example/auth/google/callback'
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function toIdToken(claims: object, header: object = { alg: 'ES256', kid: 'k' }) {
  const text = `${part(header)}.${part(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

const login = { state: 'the-state', nonce: 'the-nonce', codeVerifier: 'v'.repeat(43), mustChoose: false }
const shown = { name: 'Issuer', icon: 'data:,' }
const plain = { ...getPreset(ISSUER), ...shown }

type Fault = {
  claims?: object
  token?: object | string
  tokenStatus?: number
  metadata?: object
  userinfo?: object
  fails?: number
}

/** An issuer behind `fetch`, without a socket. */
function createIssuer(fault: Fault = {}) {
  const requests: { url: string; body: URLSearchParams }[] = []
  let failures = fault.fails ?? 0
  const answers: Record<string, () => [number, object | string]> = {
    '/.well-known/openid-configuration': () => [
      200,
      {
        issuer: ISSUER,
        authorization_endpoint: `${ISSUER}/authorize`,
        token_endpoint: `${ISSUER}/token`,
        userinfo_endpoint: `${ISSUER}/userinfo`,
        jwks_uri: `${ISSUER}/jwks`,
        id_token_signing_alg_values_supported: ['ES256'],
        authorization_response_iss_parameter_supported: true,
        ...fault.metadata,
      },
    ],
    '/token': () => {
      const iat = Math.floor(Date.now() / 1000)
      const claims = {
        iss: ISSUER,
        aud: 'client',
        sub: 'alice',
        iat,
        exp: iat + 300,
        nonce: login.nonce,
        email: 'alice@mail.example',
        name: 'Alice',
        ...fault.claims,
      }
      const token = { access_token: 'access-canary', token_type: 'Bearer', id_token: toIdToken(claims) }
      return [fault.tokenStatus ?? 200, typeof fault.token === 'string' ? fault.token : { ...token, ...fault.token }]
    },
    '/userinfo': () => [200, fault.userinfo ?? { sub: 'alice' }],
  }
  const fetch = (async (input: string | URL | Request, init?: RequestInit) => {
    const url = String(input)
    requests.push({ url, body: new URLSearchParams(String(init?.body ?? '')) })
    if (failures > 0) {
      failures -= 1
      throw new TypeError('fetch failed')
    }
    const [status, body] = answers[new URL(url).pathname]?.() ?? [404, {}]
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return new Response(text, { status, headers: { 'content-type': 'application/json' } })
  }) as typeof globalThis.fetch
  return { fetch, requests }
}

function createProvider(fault: Fault = {}, changes: Partial<OidcProviderParameters> = {}) {
  const { fetch, requests } = createIssuer(fault)
  const parameters = {
    ...plain,
    issuer: ISSUER,
    clientId: 'client',
    clientSecret: 'secret-canary',
    redirectUri: REDIRECT,
    fetch,
  }
  return { provider: createOidcProvider({ ...parameters, ...changes }), requests }
}

const finish = (fault: Fault = {}, query = '', changes: Partial<OidcProviderParameters> = {}) =>
  createProvider(fault, changes).provider.finish({
    callbackUrl: new URL(`${REDIRECT}?${query === '' ? `code=code-canary&state=the-state&iss=${ISSUER}` : query}`),
    ...login,
  })

async function expectFailed(promise: Promise<unknown>, expected = 'oauth_exchange_failed') {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(CoordinatorError)
  const { code, message, details, cause } = error as CoordinatorError
  expect(code).toBe(expected)
  expect(cause).toBeUndefined()
  expect(`${message} ${details}`).not.toMatch(/canary|eyJ|alice/)
}

describe('start', () => {
  test('uses the authorization code flow with PKCE S256, state, nonce and the exact redirect URI', async () => {
    const url = await createProvider().provider.start(login)
    expect(`${url.origin}${url.pathname}`).toBe(`${ISSUER}/authorize`)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'client',
      response_type: 'code',
      redirect_uri: REDIRECT,
      scope: 'openid email profile',
      state: login.state,
      nonce: login.nonce,
      code_challenge: createHash('sha256').update(login.codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
  })

  test('fetches metadata once, and again after a failure', async () => {
    const { provider, requests } = createProvider({ fails: 1 })
    await expectFailed(provider.start(login), 'provider_unavailable')
    await Promise.all([provider.start(login), provider.start(login)])
    await provider.start(login)
    expect(requests.length).toBe(2)
  })

  test.each([
    { issuer: 'https://evil.example' },
    { issuer: `${ISSUER}/x` },
    { authorization_endpoint: undefined },
    { authorization_endpoint: 'not a url' },
  ])('rejects metadata with %j', async (metadata) => {
    await expectFailed(createProvider({ metadata }).provider.start(login), 'provider_unavailable')
  })
})

test('rejects Microsoft’s issuer for all tenants, because any tenant could impersonate our users', async () => {
  const issuer = 'https://login.microsoftonline.com/common/v2.0'
  const tenant = 'https://login.microsoftonline.com/0000/v2.0'
  const answer = (named: string) =>
    (async () =>
      Response.json({
        issuer: named,
        authorization_endpoint: `${ISSUER}/authorize`,
        token_endpoint: `${ISSUER}/token`,
      })) as typeof globalThis.fetch
  const placeholder = answer('https://login.microsoftonline.com/{tenantid}/v2.0')
  await expectFailed(createProvider({}, { issuer, fetch: placeholder }).provider.start(login), 'provider_unavailable')
  await createProvider({}, { issuer: tenant, fetch: answer(tenant) }).provider.start(login)
})

describe('finish', () => {
  test('returns the raw token and its claims', async () => {
    const { provider, requests } = createProvider()
    const callbackUrl = new URL(`https://elsewhere.example/x?code=code-canary&state=the-state&iss=${ISSUER}`)
    const answer = await provider.finish({ callbackUrl, ...login })
    expect(answer).toEqual({
      idToken: expect.stringMatching(/^eyJ/),
      issuer: ISSUER,
      subject: 'alice',
      email: 'alice@mail.example',
      name: 'Alice',
    })
    expect(Object.fromEntries(requests.at(-1)?.body ?? [])).toEqual({
      grant_type: 'authorization_code',
      code: 'code-canary',
      redirect_uri: REDIRECT,
      code_verifier: login.codeVerifier,
      client_id: 'client',
      client_secret: 'secret-canary',
    })
  })

  test('sends no secret for a public client', async () => {
    const { fetch, requests } = createIssuer()
    const provider = createOidcProvider({ ...plain, issuer: ISSUER, clientId: 'client', redirectUri: REDIRECT, fetch })
    await provider.finish({ callbackUrl: new URL(`${REDIRECT}?code=x&state=the-state&iss=${ISSUER}`), ...login })
    expect(requests.at(-1)?.body.has('client_secret')).toBe(false)
  })

  test.each([
    ['no name', { name: undefined }, null],
    ['a blank name', { name: ' ' }, null],
    ['a name that is a number', { name: 5 }, null],
    ['a very long name', { name: 'a'.repeat(5000) }, 'a'.repeat(200)],
    ['a name with a NUL, which PostgreSQL refuses', { name: 'Al\0ice' }, 'Alice'],
    ['a name with line breaks and half a character', { name: '\r\nAlice\ud83d\u0085' }, 'Alice'],
    ['a name of control characters only', { name: '\0\u001b' }, null],
    ['a name whose cut goes through a character', { name: `${'a'.repeat(199)}💥` }, 'a'.repeat(199)],
  ])('%s', async (_, claims, name) => {
    expect(await finish({ claims })).toMatchObject({ name })
  })

  test('reads the e-mail address from the user-info endpoint if the token lacks it', async () => {
    const userinfo = { sub: 'alice', email: 'info@mail.example', name: 'Info' }
    const answer = await finish({ claims: { email: undefined, name: undefined }, userinfo })
    expect(answer).toMatchObject({ subject: 'alice', email: 'info@mail.example', name: 'Info' })
  })

  test.each([
    [
      'user info about somebody else',
      { claims: { email: undefined }, userinfo: { sub: 'bob', email: 'b@mail.example' } },
    ],
    ['no e-mail claim anywhere', { claims: { email: undefined } }],
    [
      'no e-mail claim, and no user-info endpoint',
      { claims: { email: undefined }, metadata: { userinfo_endpoint: undefined } },
    ],
    ['an empty e-mail claim', { claims: { email: '' } }],
    ['an e-mail claim without an @', { claims: { email: 'alice' } }],
    ['an e-mail claim with a line break', { claims: { email: 'a@b\nc' } }],
    ['an e-mail claim with a NUL', { claims: { email: 'a\0@mail.example' } }],
    ['an e-mail claim with half a character', { claims: { email: 'a\ud83d@mail.example' } }],
    ['a subject with a NUL', { claims: { sub: 'al\0ice' } }],
    ['an e-mail claim that is no text', { claims: { email: ['a@mail.example'] } }],
    ['another nonce', { claims: { nonce: 'other' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['another issuer', { claims: { iss: 'https://evil.example' } }],
    ['another audience', { claims: { aud: 'other' } }],
    ['an expired token', { claims: { exp: 1 } }],
    ['no subject', { claims: { sub: undefined } }],
    ['no ID token', { token: { id_token: undefined } }],
    ['an invalid token', { token: { id_token: 'a.b.c' } }],
    ['an unsigned token', { token: { id_token: `${part({ alg: 'none' })}.${part({ sub: 'alice' })}.` } }],
    ['a huge token', { claims: { x: 'x'.repeat(20_000) } }],
    ['a refusal', { tokenStatus: 400, token: { error: 'invalid_grant', error_description: 'canary' } }],
    ['no JSON', { token: '<html>canary' }],
  ] as [string, Fault][])('%s is oauth_exchange_failed, and quotes nothing', async (_, fault) => {
    await expectFailed(finish(fault))
  })

  test.each<[string, string, Fault]>([
    ['a failure', 'provider_unavailable', { tokenStatus: 500, token: 'canary' }],
    ['a failure in its words', 'provider_unavailable', { tokenStatus: 503, token: { error: 'canary' } }],
    ['a secret that has expired', 'provider_unavailable', { tokenStatus: 401, token: { error: 'invalid_client' } }],
    ['a client that may not', 'provider_unavailable', { tokenStatus: 400, token: { error: 'unauthorized_client' } }],
  ])('%s is %s, which users cannot fix', async (_, code, fault) => {
    await expectFailed(finish(fault), code)
  })

  test('returns provider_unavailable if the exchange cannot connect', async () => {
    const { fetch } = createIssuer()
    const cut = (async (input: string | URL | Request, init?: RequestInit) => {
      if (new URL(String(input)).pathname === '/token') throw new TypeError('fetch failed')
      return fetch(input, init)
    }) as typeof globalThis.fetch
    await expectFailed(finish({}, '', { fetch: cut }), 'provider_unavailable')
  })

  test.each([
    ['another state', `code=code-canary&state=other&iss=${ISSUER}`],
    ['no state', `code=code-canary&iss=${ISSUER}`],
    ['no code', `state=the-state&iss=${ISSUER}`],
    ['two codes', `code=a&code=b&state=the-state&iss=${ISSUER}`],
    ['another iss (mix-up)', 'code=code-canary&state=the-state&iss=https://evil.example'],
    ['no iss, where the provider says it sends one', 'code=code-canary&state=the-state'],
    ['a cancellation in the name of another issuer', 'error=access_denied&state=the-state&iss=https://evil.example'],
    ['a cancellation of another sign-in', `error=access_denied&state=other&iss=${ISSUER}`],
  ])('a callback with %s is refused', async (_, query) => {
    await expectFailed(finish({}, query))
  })
})

describe('error responses of a provider', () => {
  const answer = (error: string) => finish({}, `error=${error}&error_description=canary&state=the-state&iss=${ISSUER}`)

  test.each(['access_denied', 'user_cancelled_authorize'])('%s: the user cancelled', async (error) => {
    expect(await answer(error)).toBe('cancelled')
  })

  test.each([
    ['invalid_scope', 'oauth_refused', 'the provider returned invalid_scope'],
    ['login_required', 'oauth_refused', 'the provider returned login_required'],
    ['canary-invented', 'oauth_refused', undefined],
    ['server_error', 'provider_unavailable', 'the provider returned server_error'],
    ['temporarily_unavailable', 'provider_unavailable', 'the provider returned temporarily_unavailable'],
  ])('%s is %s', async (error, code, details) => {
    await expectFailed(answer(error), code)
    await expect(answer(error)).rejects.toMatchObject({ details })
  })
})

describe('the prompt for an account', () => {
  const promptOf = async (metadata: object, mustChoose = true) =>
    (await createProvider({ metadata }).provider.start({ ...login, mustChoose })).searchParams.get('prompt')

  test.each([
    [{}, 'select_account'],
    [{ prompt_values_supported: ['none', 'login', 'select_account'] }, 'select_account'],
    [{ prompt_values_supported: ['none', 'login', 'consent'] }, 'login'],
    [{ prompt_values_supported: ['none'] }, null],
    [{ prompt_values_supported: 'login' }, 'select_account'],
  ])('is asked after a sign-out, as the provider takes it: %j', async (metadata, prompt) => {
    expect(await promptOf(metadata)).toBe(prompt)
    expect(await promptOf(metadata, false)).toBeNull()
  })
})

test.each([
  ['login', 'login'],
  ['off', null],
] as const)('the setting overrides the metadata: %s', async (prompt, expected) => {
  const metadata = { prompt_values_supported: ['select_account'] }
  const url = await createProvider({ metadata }, { prompt }).provider.start({ ...login, mustChoose: true })
  expect(url.searchParams.get('prompt')).toBe(expected)
})

describe('Apple', () => {
  const preset = getPreset('https://appleid.apple.com')

  test('has a separate scope and posts a form', async () => {
    const { searchParams } = await createProvider({}, { ...preset, ...shown }).provider.start(login)
    expect([searchParams.get('scope'), searchParams.get('response_mode')]).toEqual(['openid email name', 'form_post'])
  })

  test('gets a new client secret for each exchange', async () => {
    let count = 0
    const { provider, requests } = createProvider({}, { clientSecret: () => `secret-${++count}` })
    const callbackUrl = new URL(`${REDIRECT}?code=x&state=the-state&iss=${ISSUER}`)
    for (let index = 0; index < 2; index++) await provider.finish({ callbackUrl, ...login })
    expect(requests.flatMap(({ body }) => body.getAll('client_secret'))).toEqual(['secret-1', 'secret-2'])
  })
})

describe('an endless response', () => {
  test.each(['/.well-known/openid-configuration', '/token', '/userinfo'])(
    'of %s is rejected at the size limit',
    async (path) => {
      const chunk = new TextEncoder().encode(' '.repeat(65_536))
      const { fetch } = createIssuer({ claims: { email: undefined } })
      let sent = 0
      const body = () =>
        new ReadableStream({
          pull(controller) {
            sent += chunk.length
            controller.enqueue(chunk)
            // Large but finite, so that a reader without a limit fails here instead of exhausting memory.
            if (sent >= 64 * 1_048_576) controller.close()
          },
        })
      const flooding = (async (input: string | URL | Request, init?: RequestInit) =>
        new URL(String(input)).pathname === path
          ? new Response(body(), { headers: { 'content-type': 'application/json' } })
          : fetch(input, init)) as typeof globalThis.fetch
      const isMetadata = path.startsWith('/.well-known')
      await expectFailed(finish({}, '', { fetch: flooding }), isMetadata ? 'provider_unavailable' : undefined)
      expect(sent).toBeGreaterThan(0)
      expect(sent).toBeLessThan(1_048_576)
    },
  )
})

describe('plain http', () => {
  const create = (issuer: string, allowInsecure: boolean) => () =>
    createOidcProvider({ ...plain, issuer, clientId: 'client', redirectUri: REDIRECT, allowInsecure })

  test('is allowed only for loopback with allowInsecure', () => {
    expect(create('http://localhost:9000', true)).not.toThrow()
    expect(create('http://127.0.0.1:9000', true)).not.toThrow()
    expect(create('http://localhost:9000', false)).toThrow('https')
    expect(create('http://issuer.example', true)).toThrow('https')
    expect(create('http://localhost.evil.example', true)).toThrow('https')
    expect(create('ftp://localhost', true)).toThrow('https')
  })
})
