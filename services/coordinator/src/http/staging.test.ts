import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { testChainIds } from '@countersign/service'
import { afterEach, describe, expect, test } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import { completeProof } from '../proof/completeProof.fake.ts'
import { createHttpServer } from './createHttpServer.ts'
import { isOneHost, writeStagingCookie } from './stagingCookie.ts'
import { API, APP, createTestApp, toDigest, txMetadata } from './testApp.fake.ts'

const password = 'a password of staging'
const staging = { isMock: true, staging: { password }, allowedChainIds: testChainIds }
const basic = (text = password) => ({ authorization: `Basic ${Buffer.from(`mock:${text}`).toString('base64')}` })
const form = (fields: Record<string, string>) => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(API).origin },
  body: new URLSearchParams(fields).toString(),
})

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

/** A staging, and its own server. */
async function listen() {
  const app = createTestApp({ config: staging })
  app.store.rows.proofs.set(completeProof.slug, completeProof)
  const server = createHttpServer({ direct: app.direct, fetch: app.app.fetch, refuse: app.refuseUnreadable })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { ...app, port, fetch: (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init) }
}

/** Takes the cookie as a browser does. */
async function open(app: Awaited<ReturnType<typeof listen>>): Promise<string> {
  const response = await app.fetch('/staging', { ...form({ password }), redirect: 'manual' })
  expect(response.status).toBe(303)
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

const guarded: [string, string][] = [
  ['GET', '/'],
  ['GET', '/docs'],
  ['GET', '/docs/errors'],
  ['GET', '/openapi.json'],
  ['GET', '/auth'],
  ['GET', '/auth/google'],
  ['GET', '/auth/google/callback?code=x&state=y'],
  ['POST', '/auth/google/form'],
  ['GET', '/auth/me'],
  ['GET', '/wallet/me'],
  ['GET', `/proof/${completeProof.slug}`],
  ['GET', `/proof/${completeProof.slug}/events`],
  ['GET', '/health/attestation'],
  ['GET', '/log'],
  ['GET', '/ipfs/bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'],
  ['GET', '/nothing/here'],
  ['POST', '/sign/digest'],
  ['POST', '/sign/typed-data'],
  ['POST', '/wallet/provision'],
  ['PUT', '/health/attestation'],
]

describe('the password', () => {
  test.each(guarded)('guards %s %s', async (method, path) => {
    const { fetch } = await listen()
    const response = await fetch(path, { method, redirect: 'manual' })
    expect([response.status, response.headers.get('countersign-silicon')]).toEqual([401, 'MOCK'])
    expect(await response.json()).toMatchObject({
      code: 'not_authenticated',
      detail: expect.stringContaining('staging: the password is missing'),
    })
  })

  test.each(guarded)('lets %s %s through, marked', async (method, path) => {
    const { fetch } = await listen()
    const response = await fetch(path, { method, redirect: 'manual', headers: basic() })
    expect(response.headers.get('countersign-silicon')).toBe('MOCK')
    expect(await response.text()).not.toContain('staging: ')
  })

  test('the probes of an orchestrator need none, and say what they are', async () => {
    const { fetch } = await listen()
    for (const [path, status] of [
      ['/health', 'ok'],
      ['/health/ready', 'ready'],
    ] as const) {
      const response = await fetch(path)
      expect([response.status, response.headers.get('countersign-silicon')]).toEqual([200, 'MOCK'])
      expect(await response.json()).toEqual({ status, mode: 'mock' })
    }
  })

  test('a preflight needs none, since it cannot carry any', async () => {
    const { fetch } = await listen()
    const headers = { origin: APP, 'access-control-request-method': 'POST' }
    const response = await fetch('/sign/digest', { method: 'OPTIONS', headers })
    expect([response.status, response.headers.get('countersign-silicon')]).toEqual([204, 'MOCK'])
  })

  test('what cannot be parsed is marked too', async () => {
    const { refuseUnreadable } = await listen()
    expect(refuseUnreadable(new Error('x')).headers.get('countersign-silicon')).toBe('MOCK')
  })

  test('a person is asked for it on a page, and comes back to the page that was asked for', async () => {
    const app = await listen()
    const page = await app.fetch('/docs', { headers: { accept: 'text/html' } })
    const html = await page.text()
    expect([page.status, page.headers.get('content-type')]).toEqual([401, expect.stringContaining('text/html')])
    expect(html).toContain(`value="${API}/docs"`)
    expect(page.headers.get('content-security-policy')).toContain("form-action 'self'")
    const back = await app.fetch('/staging', { ...form({ password, return_to: `${API}/docs` }), redirect: 'manual' })
    expect([back.status, back.headers.get('location')]).toEqual([303, `${API}/docs`])
    const cookie = await open(app)
    expect((await app.fetch('/docs', { headers: { cookie } })).status).toBe(200)
  })

  test.each([`/proof/${completeProof.slug}`, `/proof/${completeProof.slug}/events`, '/log', '/openapi.json'])(
    'a person who opens %s is asked for it too',
    async (path) => {
      const { fetch } = await listen()
      const page = await fetch(path, { headers: { accept: 'text/html' } })
      expect([page.status, page.headers.get('content-type')]).toEqual([401, expect.stringContaining('text/html')])
    },
  )

  test.each(guarded)('no cache keeps %s %s for those without it', async (method, path) => {
    const { fetch } = await listen()
    const response = await fetch(path, { method, redirect: 'manual', headers: basic() })
    expect(response.headers.get('cache-control')).toContain('no-store')
    await response.body?.cancel()
  })

  test('a failure of something else is no reason to ask for it, whatever its words', async () => {
    const app = await listen()
    app.app.get('/thrown', () => {
      throw new CoordinatorError('not_authenticated', 'x', { details: 'staging: the password is missing' })
    })
    const response = await app.fetch('/thrown', { headers: { accept: 'text/html', ...basic() } })
    expect([response.status, response.headers.get('content-type')]).toEqual([401, 'application/problem+json'])
  })

  test.each(['https://evil.example/', '//evil.example/', 'javascript:alert(1)', 'https://app.example.evil.example/'])(
    'it does not lead to %s',
    async (returnTo) => {
      const { fetch } = await listen()
      const response = await fetch('/staging', { ...form({ password, return_to: returnTo }), redirect: 'manual' })
      expect([response.status, response.headers.get('set-cookie')]).toEqual([400, null])
    },
  )

  test('a wrong one sets no cookie; after ten nobody is listened to for a while, and who was let in stays in', async () => {
    const app = await listen()
    const cookie = await open(app)
    for (let count = 0; count < 10; count += 1) {
      const response = await app.fetch('/staging', { ...form({ password: 'wrong' }), redirect: 'manual' })
      expect([response.status, response.headers.get('set-cookie')]).toEqual([401, null])
    }
    const refusals = [
      await app.fetch('/staging', { ...form({ password }), redirect: 'manual' }),
      await app.fetch('/docs', { headers: basic() }),
    ]
    for (const { status, headers } of refusals) expect([status, headers.get('retry-after')]).toEqual([429, '30'])
    expect((await app.fetch('/docs', { headers: { cookie } })).status).toBe(200)
    expect((await app.fetch('/docs', { headers: { cookie, ...basic('wrong') } })).status).toBe(200)
    app.clock.advance(30_000)
    expect((await app.fetch('/docs', { headers: basic() })).status).toBe(200)
  })

  test('wrong ones by Basic are counted as well', async () => {
    const app = await listen()
    const path = `/proof/${completeProof.slug}`
    const statuses: number[] = []
    for (let count = 0; count < 11; count += 1) statuses.push((await app.fetch(path, { headers: basic('no') })).status)
    expect(statuses).toEqual([...Array(10).fill(401), 429])
  })

  test.each([
    ['no form', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }],
    ['a long form', form({ password: 'x'.repeat(20_000) })],
  ])('refused: %s', async (_, init) => {
    const { fetch } = await listen()
    expect((await fetch('/staging', init)).status).toBe(400)
  })

  test('is in no log line', async () => {
    const app = await listen()
    await open(app)
    await app.fetch('/docs', { headers: basic() })
    await app.fetch('/docs', { headers: basic('a wrong password') })
    expect(JSON.stringify(app.log.lines)).not.toMatch(/a password of staging|a wrong password/)
  })
})

describe('every page', () => {
  test.each([
    ['/docs', basic()],
    ['/docs/errors', basic()],
    ['/staging', {}],
    ['/docs', {}],
    ['/auth/nobody', basic()],
  ])('%s says MOCK first', async (path, headers) => {
    const { fetch } = await listen()
    const response = await fetch(path, { headers: { accept: 'text/html', ...headers } })
    expect(await response.text()).toMatch(/<body><p role="note"><strong>MOCK: simulated silicon/)
  })
})

test('without simulated silicon there is no mark, and no page for a password', async () => {
  const { request } = createTestApp()
  const response = await request('/docs')
  expect(response.headers.get('countersign-silicon')).toBeNull()
  expect(await response.text()).not.toContain('MOCK')
  expect((await request('/staging')).status).toBe(404)
})

describe('what a staging signs', () => {
  const typedData = (chainId: string | number | undefined) => ({
    domain: { name: 'x', ...(chainId === undefined ? {} : { chainId }) },
    types: {
      EIP712Domain: [
        { name: 'name', type: 'string' },
        ...(chainId === undefined ? [] : [{ name: 'chainId', type: 'uint256' }]),
      ],
      Note: [{ name: 'text', type: 'string' }],
    },
    primaryType: 'Note',
    message: { text: 'hello' },
  })

  async function setUp() {
    const app = await listen()
    const user = app.browser()
    user.jar.set(...((await open(app)).split('=') as [string, string]))
    await user.signIn()
    await user.post('/wallet/provision')
    return { ...app, user }
  }

  const transaction = (chainId: number) => ({
    digest: toDigest({ ...txMetadata, chainId }),
    txMetadata: { ...txMetadata, chainId },
  })

  test.each([1, 10, 137, 8453, 42161])('nothing for chain %d, in whichever way it is asked', async (chainId) => {
    const { user, signings } = await setUp()
    const asked: [string, object][] = [
      ['/sign/digest', transaction(chainId)],
      ['/sign/typed-data', typedData(chainId)],
      ['/sign/typed-data', typedData(`0x${chainId.toString(16)}`)],
      ['/sign/authorization', { chainId, address: `0x${'77'.repeat(20)}`, nonce: 0 }],
    ]
    for (const [path, body] of asked) {
      const response = await user.post(path, body)
      expect([response.status, await response.json()]).toEqual([
        422,
        expect.objectContaining({ code: 'chain_not_allowed' }),
      ])
    }
    expect(signings).toEqual([])
  })

  test('no typed data that is good on every chain, and no authorization for all', async () => {
    const { user, signings } = await setUp()
    const everywhere = await user.post('/sign/typed-data', typedData(undefined))
    expect(await everywhere.json()).toMatchObject({
      code: 'chain_not_allowed',
      detail: expect.stringContaining('every chain'),
    })
    const all = await user.post('/sign/authorization', { chainId: 0, address: `0x${'77'.repeat(20)}`, nonce: 0 })
    expect(await all.json()).toMatchObject({ code: 'authorization_not_allowed' })
    expect(signings).toEqual([])
  })

  test('no message that is a hash: contracts of every chain take such a signature', async () => {
    const { user, signings } = await setUp()
    const hash = await user.post('/sign/message', { message: `0x${'ab'.repeat(32)}` })
    expect([hash.status, await hash.json()]).toEqual([
      422,
      expect.objectContaining({ code: 'chain_not_allowed', detail: expect.stringContaining('32 bytes') }),
    ])
    expect(signings).toEqual([])
    for (const length of [0, 31, 33]) {
      await user.post('/sign/message', { message: `0x${'ab'.repeat(length)}` })
    }
    expect(signings).toHaveLength(3)
  })

  test.each(testChainIds)('transactions and typed data for test network %d', async (chainId) => {
    const { user, signings } = await setUp()
    expect((await user.post('/sign/digest', transaction(chainId))).status).toBe(200)
    expect((await user.post('/sign/typed-data', typedData(chainId))).status).toBe(200)
    expect(signings).toHaveLength(2)
  })
})

test.each([
  [['https://staging.example', 'https://staging.example'], true],
  [['http://localhost:8080', 'http://localhost:8088'], true],
  [['https://api.staging.example', 'https://app.staging.example'], false],
  // A public suffix: its cookie would be for strangers.
  [['https://a.co.uk', 'https://b.co.uk'], false],
  [['https://staging.example', 'https://a.staging.example'], false],
])('whether %j are one host: %s', (urls, expected) => {
  expect(isOneHost(urls)).toBe(expected)
})

test('the cookie is for the host that sets it alone', () => {
  for (const isHttps of [true, false]) expect(writeStagingCookie('x', { isHttps })).not.toMatch(/domain/i)
})
