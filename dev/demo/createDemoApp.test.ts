import { createPublicClient, custom, getAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage, type SiweMessage, verifySiweMessage } from 'viem/siwe'
import { describe, expect, test } from 'vitest'
import { createDemoApp } from './createDemoApp.ts'
import { createRelyingParty } from './relyingParty.ts'

const ORIGIN = 'http://localhost:5174'
const SLUG = 'q8Zk2vXo1fTn0uYbWcR3dA'
const account = privateKeyToAccount(generatePrivateKey())
const other = privateKeyToAccount(generatePrivateKey())
const config = { origin: ORIGIN, webUrl: 'http://localhost:5173', apiBaseUrl: 'http://api', chainId: 31337, rpcUrl: '' }

/** The site, with a manual clock and a chain without contract wallets. */
function openSite() {
  let now = Date.parse('2026-03-10T12:00:00Z')
  let count = 0
  const client = createPublicClient({ transport: custom({ request: async () => '0x00' }) })
  const party = createRelyingParty(
    {
      now: () => new Date(now),
      random: () => `random${String(++count).padStart(10, '0')}`,
      verify: (parameters) => verifySiweMessage(client, parameters),
    },
    config,
  )
  const getFile = async (path: string) => (path === '/index.html' ? { type: 'text/html', body: 'page' } : undefined)
  const app = createDemoApp({ config, party, getFile })
  const post = (path: string, { body, cookie = '', origin = ORIGIN }: Post = {}) =>
    app.request(path, {
      method: 'POST',
      headers: { cookie, origin, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    get: (path: string) => app.request(path),
    post,
    wait(ms: number) {
      now += ms
    },
    async getNonce() {
      const answer = await post('/nonce')
      const { nonce } = (await answer.json()) as { nonce: string }
      return { nonce, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' }
    },
    /** The body of an honest page, with changes. */
    async sign(nonce: string, changes: Partial<SiweMessage> = {}, signer = account) {
      const message = createSiweMessage({
        address: account.address,
        domain: 'localhost:5174',
        uri: ORIGIN,
        version: '1',
        chainId: 31337,
        nonce,
        issuedAt: new Date(now),
        expirationTime: new Date(now + 60_000),
        ...changes,
      })
      return { message, signature: await signer.signMessage({ message }), slug: SLUG }
    },
    readMe: async (cookie: string) => (await app.request('/me', { headers: { cookie } })).json(),
  }
}

type Post = { body?: unknown; cookie?: string; origin?: string }

async function refusalOf(answer: Response) {
  expect(answer.headers.get('set-cookie') ?? '').not.toContain('demo_session')
  return [answer.status, ((await answer.json()) as { error: string }).error]
}

describe('signing in to the site', () => {
  test('a valid message with the current number creates a session, until sign-out', async () => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const answer = await site.post('/sign-in', { body: await site.sign(nonce), cookie })
    const signedIn = { address: getAddress(account.address), signedInAt: '2026-03-10T12:00:00.000Z', slug: SLUG }
    expect([answer.status, await answer.json()]).toEqual([200, signedIn])
    const session = /demo_session=\w+/.exec(answer.headers.get('set-cookie') ?? '')?.[0] ?? ''
    expect(answer.headers.get('set-cookie')).toMatch(/demo_session=\w+; Path=\/; HttpOnly; SameSite=Strict/)
    expect(await site.readMe(session)).toEqual(signedIn)
    expect(await site.readMe('demo_session=guess')).toBeNull()
    await site.post('/sign-out', { cookie: session })
    expect(await site.readMe(session)).toBeNull()
  })

  const MINUTE_MS = 60_000
  const at = (minutes: number) => new Date(Date.parse('2026-03-10T12:00:00Z') + minutes * MINUTE_MS)
  test.each<[string, Partial<SiweMessage>, string]>([
    ['another number', { nonce: 'another1' }, 'for another sign-in'],
    ['another domain', { domain: 'evil.example' }, 'for another site'],
    ['another URI', { uri: 'http://localhost:5173' }, 'for another site'],
    ['another chain', { chainId: 1 }, 'for another chain'],
    ['an expired time', { expirationTime: at(0) }, 'has expired'],
    ['a future time', { notBefore: at(1) }, 'did not sign it'],
    ['another address', { address: other.address }, 'did not sign it'],
  ])('rejects %s', async (_, changes, reason) => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const answer = await site.post('/sign-in', { body: await site.sign(nonce, changes), cookie })
    expect(await refusalOf(answer)).toEqual([401, expect.stringContaining(reason)])
  })

  test('rejects a message that never expires', async () => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const { message } = await site.sign(nonce)
    const endless = message.replace(/\nExpiration Time: .*/, '')
    const signature = await account.signMessage({ message: endless })
    const answer = await site.post('/sign-in', { body: { message: endless, signature }, cookie })
    expect(await refusalOf(answer)).toEqual([401, expect.stringContaining('no expiry')])
  })

  test('rejects a second use, by the same browser or another, also after a failed try', async () => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const body = await site.sign(nonce)
    expect((await site.post('/sign-in', { body, cookie })).status).toBe(200)
    expect(await refusalOf(await site.post('/sign-in', { body, cookie }))).toEqual([
      401,
      expect.stringContaining('already used'),
    ])
    const next = await site.getNonce()
    expect(await refusalOf(await site.post('/sign-in', { body, cookie: next.cookie }))).toEqual([
      401,
      expect.stringContaining('for another sign-in'),
    ])
    const late = await site.post('/sign-in', { body: await site.sign(next.nonce), cookie: next.cookie })
    expect(await refusalOf(late)).toEqual([401, expect.stringContaining('already used')])
  })

  test('rejects a number that another browser got', async () => {
    const site = openSite()
    const { nonce } = await site.getNonce()
    for (const cookie of ['', (await site.getNonce()).cookie]) {
      expect((await site.post('/sign-in', { body: await site.sign(nonce), cookie })).status).toBe(401)
    }
  })

  test('a number expires after five minutes', async () => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    site.wait(5 * MINUTE_MS)
    const answer = await site.post('/sign-in', { body: await site.sign(nonce), cookie })
    expect(await refusalOf(answer)).toEqual([401, expect.stringContaining('has expired')])
  })

  test.each<[string, (body: { message: string; signature: string }) => unknown]>([
    ['no JSON', () => '{'],
    ['no message', ({ signature }) => ({ signature })],
    ['no signature', ({ message }) => ({ message })],
    ['a signature that is not hex', ({ message }) => ({ message, signature: '0xzz' })],
    ['a line after it', ({ message, signature }) => ({ message: `${message}\nAll my tokens`, signature })],
  ])('rejects %s', async (_, spoil) => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const answer = await site.post('/sign-in', { body: spoil(await site.sign(nonce)), cookie })
    expect(await refusalOf(answer)).toEqual([401, expect.any(String)])
  })

  test('rejects a body that is too long before reading it', async () => {
    const site = openSite()
    const { cookie } = await site.getNonce()
    const answer = await site.post('/sign-in', { body: { message: 'x'.repeat(9_000) }, cookie })
    expect(answer.status).toBe(413)
  })

  test.each(['/nonce', '/sign-in', '/sign-out'])('rejects %s from a page of another site', async (path) => {
    const site = openSite()
    for (const origin of ['http://localhost:5173', 'null', '']) {
      expect((await site.post(path, { origin })).status).toBe(403)
    }
  })

  test("pages can't be framed: visitors must see what a click signs", async () => {
    const answer = await openSite().get('/')
    expect([await answer.text(), answer.headers.get('x-frame-options')]).toEqual(['page', 'DENY'])
  })

  test('an invalid slug becomes no link', async () => {
    const site = openSite()
    const { nonce, cookie } = await site.getNonce()
    const answer = await site.post('/sign-in', { body: { ...(await site.sign(nonce)), slug: '../evil' }, cookie })
    expect(await answer.json()).not.toHaveProperty('slug')
  })

  test("drops the oldest numbers, so that abandoned visits don't fill the memory", async () => {
    const site = openSite()
    const first = await site.getNonce()
    for (let index = 0; index < 1_000; index++) await site.getNonce()
    const last = await site.getNonce()
    const signIn = async ({ nonce, cookie }: typeof first) =>
      (await site.post('/sign-in', { body: await site.sign(nonce), cookie })).status
    expect([await signIn(first), await signIn(last)]).toEqual([401, 200])
  })
})
