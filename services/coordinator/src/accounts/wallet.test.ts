import { hash } from 'node:crypto'
import type { TransactionPage } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../test/http/testApp.ts'
import { completeProof } from '../../test/proofs/completeProof.ts'

const toSlug = (text: string) => hash('sha256', text, 'buffer').subarray(0, 16).toString('base64url')

function add({ store }: TestApp, walletId: string, name: string) {
  const slug = toSlug(name)
  const txHash = `0x${hash('sha256', name)}` as const
  store.rows.signed.set(name, { walletId, digest: txHash, signature: `0x${'1b'.repeat(65)}`, slug })
  const createdAt = Date.parse('2026-06-15T12:00:00.000Z')
  store.rows.proofs.set(slug, { ...completeProof, slug, txHash, chainId: 84532, status: 'pending_pin', createdAt })
  store.rows.summaries.set(slug, payment)
}

const payment = { to: `0x${'33'.repeat(20)}`, value: '5', data: '0x', nonce: 7 } as const

async function createUsers() {
  const test = createTestApp()
  const [alice, bob] = [test.browser(), test.browser()]
  await alice.signIn()
  await bob.signIn('/auth/other')
  const [aliceWallet = '', bobWallet = ''] = [...test.store.rows.wallets.values()].map(({ id }) => id)
  const list = async (query = '', user = alice) => {
    const response = await user.get(`/wallet/transactions${query}`)
    expect(response.status).toBe(200)
    return (await response.json()) as TransactionPage
  }
  return { ...test, alice, bob, aliceWallet, bobWallet, list }
}

type Users = Awaited<ReturnType<typeof createUsers>>

function addMany(users: Users, count: number) {
  // Signatures of another user come between them.
  for (let index = 1; index <= count; index++) {
    add(users, users.aliceWallet, `a${index}`)
    add(users, users.bobWallet, `b${index}`)
  }
}
const slugsOf = ({ transactions }: TransactionPage) => transactions.map(({ slug }) => slug)
const names = (owner: string, from: number, to: number) =>
  Array.from({ length: from - to + 1 }, (_, index) => toSlug(`${owner}${from - index}`))

describe('GET /wallet/transactions', () => {
  test('returns the signatures newest first, each with the state of its proof', async () => {
    const users = await createUsers()
    addMany(users, 2)
    const slug = toSlug('a1')
    const proof = users.store.rows.proofs.get(slug)
    if (proof) users.store.rows.proofs.set(slug, { ...proof, status: 'pin_failed' })
    const common = { ...payment, chainId: 84532, createdAt: '2026-06-15T12:00:00.000Z' }
    expect(await users.list()).toEqual({
      transactions: [
        { ...common, txHash: `0x${hash('sha256', 'a2')}`, slug: toSlug('a2'), status: 'pending_pin' },
        { ...common, txHash: `0x${hash('sha256', 'a1')}`, slug, status: 'pin_failed' },
      ],
      nextCursor: null,
    })
  })

  test('returns 20 per page by default', async () => {
    const users = await createUsers()
    addMany(users, 101)
    expect(slugsOf(await users.list())).toEqual(names('a', 101, 82))
    expect(slugsOf(await users.list('?limit=1'))).toEqual(names('a', 101, 101))
    expect(slugsOf(await users.list('?limit=100'))).toEqual(names('a', 101, 2))
  })

  test('returns each signature once over all pages, even if new ones arrive', async () => {
    const users = await createUsers()
    addMany(users, 7)
    const seen: string[] = []
    let cursor: string | null = null
    let pages = 0
    do {
      const page: TransactionPage = await users.list(`?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`)
      seen.push(...slugsOf(page))
      cursor = page.nextCursor
      pages += 1
      add(users, users.aliceWallet, `a${7 + pages}`)
    } while (cursor !== null)
    expect([seen, pages]).toEqual([names('a', 7, 1), 3])
    expect(slugsOf(await users.list('?limit=3'))).toEqual(names('a', 10, 8))
  })

  test('a full last page has no next cursor', async () => {
    const users = await createUsers()
    addMany(users, 4)
    const { nextCursor } = await users.list('?limit=2')
    const last = await users.list(`?limit=2&cursor=${nextCursor}`)
    expect([slugsOf(last), last.nextCursor]).toEqual([names('a', 2, 1), null])
  })

  test('a cursor of another user is only a position and shows none of their signatures', async () => {
    const users = await createUsers()
    addMany(users, 5)
    const { nextCursor } = await users.list('?limit=2', users.bob)
    expect(slugsOf(await users.list(`?cursor=${nextCursor}`))).toEqual(names('a', 4, 1))
    const own = await users.list('?limit=2')
    expect(slugsOf(await users.list(`?cursor=${own.nextCursor}`, users.bob))).toEqual(names('b', 3, 1))
  })

  test('returns an empty list without a wallet', async () => {
    const test = createTestApp()
    test.entropy.isDown = true
    const user = test.browser()
    await user.signIn()
    const response = await user.get('/wallet/transactions')
    expect([response.status, await response.json()]).toEqual([200, { transactions: [], nextCursor: null }])
  })

  const cursorOf = (id: bigint) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64BE(id)
    return bytes.toString('base64url')
  }
  test.each([
    ...['', '0', '101', '-1', '1.5', '1e1', '+5', ' 5', '05', '0x5', 'NaN', 'ten', '1000', '٣'].map(
      (limit) => `limit=${encodeURIComponent(limit)}`,
    ),
    'limit=5&limit=5',
    ...[
      '',
      '1',
      'null',
      'undefined',
      '../..',
      "' or 1=1 --",
      cursorOf(0n),
      cursorOf(2n ** 63n),
      cursorOf(2n ** 64n - 1n),
    ].map((cursor) => `cursor=${encodeURIComponent(cursor)}`),
    `cursor=${cursorOf(5n)}=`,
    `cursor=${cursorOf(5n).slice(0, -1)}F`,
    `cursor=${cursorOf(5n)}AA`,
    `cursor=${cursorOf(5n).slice(1)}`,
    `cursor=${cursorOf(5n)}&cursor=${cursorOf(6n)}`,
    `cursor=${'A'.repeat(5000)}`,
  ])('?%s is 400 invalid_request', async (query) => {
    const { alice } = await createUsers()
    const response = await alice.get(`/wallet/transactions?${query}`)
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'invalid_request'])
  })

  test.each([1n, 2n ** 53n + 1n, 2n ** 63n - 1n])('accepts position %s', async (id) => {
    const users = await createUsers()
    addMany(users, 1)
    expect(slugsOf(await users.list(`?cursor=${cursorOf(id)}`))).toEqual(id === 1n ? [] : names('a', 1, 1))
  })

  test('returns 401 without a session for any query', async () => {
    const { request } = createTestApp()
    expect((await request('/wallet/transactions?limit=0')).status).toBe(401)
  })

  test('is private and shares the rate limit of the wallet', async () => {
    const off = { sign: 'off', provision: 'off', auth: 'off' } as const
    const test = createTestApp({ config: { rateLimits: { ...off, proof: { count: 2, seconds: 60 } } } })
    const user = test.browser()
    await user.signIn()
    const { status, headers } = await user.get('/wallet/transactions')
    expect([status, headers.get('ratelimit-remaining')]).toEqual([200, '1'])
    expect(headers.get('cache-control')).toBe('no-store')
    expect((await user.get('/wallet/me')).status).toBe(200)
    expect((await user.get('/wallet/transactions')).status).toBe(429)
    const foreign = await user.get('/wallet/transactions', { origin: 'https://elsewhere.example' })
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
  })
})
