import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countWebhooks, listWebhooks, retryWebhooks } from './inspectWebhooks.ts'
import {
  createTestBatch,
  createTestSession,
  createTestSigning,
  createTestUser,
  createTestWallet,
  databaseKinds,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from './store.fake.ts'
import { createWebhookEvents } from './webhookEvents.ts'
import { createWebhookStore, type DueWebhook, type WebhookStore } from './webhooks.ts'

const DAY_MS = 86_400_000

describe.each(databaseKinds)('webhooks on %s', (kind) => {
  let subject: TestStore
  let webhooks: WebhookStore
  beforeAll(async () => {
    subject = await startTestStore(kind)
    webhooks = createWebhookStore(subject.database.db)
  }, 60_000)
  afterAll(() => subject.stop())

  const run = (text: string) => sql.raw(text).execute(subject.database.db)
  const count = async () =>
    Number((await sql<{ n: string }>`select count(*) as n from webhook_events`.execute(subject.database.db)).rows[0]?.n)
  const events = () => createWebhookEvents(subject.database.db)
  const receiver = (origin: string) => ({ urlHash: randomHex(32), origin })

  /** Fresh receivers, which have nothing to get yet. */
  async function register(...origins: string[]) {
    return webhooks.register({ receivers: origins.map(receiver), keys: [Buffer.alloc(32, 1)], now: NOW })
  }
  const claim = (receiverId: number, leaseMs = 60_000) => webhooks.claim({ receiverId, limit: 100, leaseMs })
  async function signIn(createdAt = NOW) {
    const user = await subject.store.upsertUser(createTestUser())
    const session = createTestSession(user, { createdAt })
    await subject.store.createSession(session)
    return session
  }
  const outcomeOf = ({ event, receiverId }: DueWebhook, changes: { failure?: string; deadlineMs?: number } = {}) => ({
    eventId: event.id,
    receiverId,
    failure: changes.failure,
    delayMs: 0,
    deadlineMs: changes.deadlineMs ?? 60_000,
  })

  test('where nobody is to be told, nothing is written', async () => {
    await webhooks.register({ receivers: [], keys: [], now: NOW })
    await signIn()
    await events().write('publisher.short_of_gas', { account: '0xaa', chainId: 1, balanceWei: '0' }, NOW)
    expect(await count()).toBe(0)
    expect(await events().findKeys()).toEqual([])
  })

  test('a sign-in is told to each receiver, with the address only', async () => {
    const ids = await register('https://one.example', 'https://two.example')
    const { address } = await signIn()
    for (const id of ids) {
      expect(await claim(id)).toEqual([
        {
          receiverId: id,
          attempts: 1,
          event: {
            type: 'session.created',
            id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
            timestamp: new Date(NOW).toISOString(),
            data: { walletAddress: address },
          },
        },
      ])
    }
  })

  test('a sign-in that is rolled back is not told', async () => {
    const [id = 0] = await register('https://one.example')
    const user = await subject.store.upsertUser(createTestUser())
    const before = await count()
    const session = createTestSession(user)
    await subject.store.createSession(session)
    // The same again: the row is refused, and with it its event.
    await expect(subject.store.createSession(session)).rejects.toThrow()
    expect([await count(), (await claim(id)).length]).toEqual([before + 1, 1])
  })

  test.each([
    ['complete', 'proof.complete', { onchainTxHash: `0x${'ab'.repeat(32)}`, onchainBlockNumber: 7 }],
    ['onchain_failed', 'proof.failed', { failure: 'publish_reverted' }],
    ['pin_failed', 'proof.failed', { failure: 'pin_refused', ipfsCid: null }],
  ] as const)('a proof that is %s is told once, in the transaction that makes it so', async (status, type, rest) => {
    const [id = 0] = await register('https://one.example')
    const wallet = await createTestWallet(subject.store)
    const { slug, statement } = createTestSigning(wallet)
    const signing = { ...createTestSigning(wallet), slug, statement }
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const set = (text: string) => run(`update attestations set ${text} where slug = '${slug}'`)
    const pinned = `receipt_bytes = '{}', ipfs_cid = 'bafkcid'`
    if (status === 'pin_failed') await set(`status = 'pin_failed', failure = 'pin_refused'`)
    else {
      await set(`status = 'pending_onchain', ${pinned}`)
      expect(await claim(id)).toEqual([])
      const made = `status = '${status}', failure = 'publish_reverted', onchain_tx_hash = decode(repeat('ab', 32), 'hex'), onchain_block_number = 7`
      const undone = subject.database.db.transaction().execute(async (transaction) => {
        await sql.raw(`update attestations set ${made} where slug = '${slug}'`).execute(transaction)
        throw new Error('undone')
      })
      await expect(undone).rejects.toThrow('undone')
      expect(await claim(id)).toEqual([])
      await set(made)
      await set('pin_attempts = 3')
    }
    expect(await claim(id)).toMatchObject([
      {
        event: {
          type,
          data: {
            slug,
            status,
            kind: 'transaction',
            txHash: statement.txHash,
            chainId: 84532,
            walletAddress: wallet.address,
            ipfsCid: 'bafkcid',
            ...rest,
          },
        },
      },
    ])
  })

  test('a warning is told once a day, however many notice it at once', async () => {
    const [id = 0] = await register('https://one.example')
    const data = { fmspc: randomHex(6), ca: 'platform' as const, lapsesAt: new Date(NOW).toISOString() }
    await Promise.all(Array.from({ length: 5 }, () => events().write('collateral.lapsing', data, NOW)))
    await events().write('collateral.lapsing', data, NOW + DAY_MS - 1)
    await events().write('collateral.lapsing', { ...data, ca: 'processor' }, NOW)
    await events().write('collateral.lapsing', data, NOW + DAY_MS)
    expect((await claim(id)).map(({ event }) => event.timestamp).sort()).toEqual(
      [NOW, NOW, NOW + DAY_MS].map((time) => new Date(time).toISOString()),
    )
  })

  test('refusals of a vault are told one by one, and of each vault at most 60 in an hour', async () => {
    const [id = 0] = await register('https://one.example')
    const refusal = (walletAddress: `0x${string}`) =>
      events().write('vault.refused', { walletAddress, policyHash: '00', kind: 'message', code: 'policy_refused' }, NOW)
    for (let index = 0; index < 65; index++) await refusal('0xaa')
    await refusal('0xbb')
    expect(await claim(id)).toHaveLength(61)
  })

  test('what is claimed is nobody else’s until its lease is over', async () => {
    const [id = 0] = await register('https://one.example')
    await signIn()
    const claims = await Promise.all([claim(id), claim(id), claim(id)])
    expect(claims.flat()).toHaveLength(1)
    expect(await claim(id)).toEqual([])
    await run(`update webhook_deliveries set due_at = now() - interval '1 second' where receiver_id = ${id}`)
    expect(await claim(id)).toMatchObject([{ attempts: 2 }])
  })

  test('delivered is delivered, whatever another worker says later; failed is tried again; too late is dead', async () => {
    const [id = 0, other = 0] = await register('https://one.example', 'https://two.example')
    await signIn()
    const [one, two] = [(await claim(id))[0], (await claim(other))[0]] as [DueWebhook, DueWebhook]
    expect(await webhooks.settle(outcomeOf(one, { failure: 'status_500' }))).toBe('pending')
    expect(await claim(id)).toMatchObject([{ attempts: 2 }])
    expect(await webhooks.settle(outcomeOf(one))).toBe('delivered')
    expect(await webhooks.settle(outcomeOf(one, { failure: 'timed_out' }))).toBe('delivered')
    expect(await claim(id)).toEqual([])
    expect(
      await webhooks.settle({ ...outcomeOf(two, { failure: 'timed_out', deadlineMs: 1000 }), delayMs: 5000 }),
    ).toBe('dead')
    expect(await claim(other)).toEqual([])
    expect(await countWebhooks(subject.database.db)).toEqual(
      expect.arrayContaining([
        { receiver: 'https://one.example', pending: 0, dead: 0, oldestAt: undefined },
        { receiver: 'https://two.example', pending: 0, dead: 1, oldestAt: undefined },
      ]),
    )
    const dead = await listWebhooks(subject.database.db, { status: 'dead', limit: 10 })
    expect(dead).toMatchObject([
      { id: two.event.id, receiver: 'https://two.example', failure: 'timed_out', dueAt: null },
    ])
    expect(await retryWebhooks(subject.database.db, { id: 'msg_1' })).toBe(0)
    expect(await retryWebhooks(subject.database.db, { id: two.event.id })).toBe(1)
    expect(await claim(other)).toMatchObject([{ attempts: 1, event: { id: two.event.id } }])
    await webhooks.settle(outcomeOf(two))
  })

  test('receivers that the settings name no more get nothing new, and come back with what waited for them', async () => {
    const [one, two] = [receiver('https://one.example'), receiver('https://two.example')]
    const keys = [Buffer.alloc(32, 2), Buffer.alloc(32, 3)]
    const [id = 0] = await webhooks.register({ receivers: [one], keys, now: NOW })
    expect(await events().findKeys()).toEqual(keys.map((key) => new Uint8Array(key)))
    await signIn()
    const [other = 0] = await webhooks.register({ receivers: [two], keys: keys.slice(1), now: NOW })
    await signIn()
    expect(await events().findKeys()).toEqual([new Uint8Array(32).fill(3)])
    expect(await webhooks.register({ receivers: [two, one], keys, now: NOW })).toEqual([other, id])
    expect([(await claim(id)).length, (await claim(other)).length]).toEqual([1, 1])
  })

  test('what is old and delivered is forgotten; what was not delivered is kept longer', async () => {
    const [id = 0] = await register('https://one.example')
    await run('delete from webhook_events')
    for (const createdAt of [NOW - 40 * DAY_MS, NOW - 3 * DAY_MS, NOW - 3 * DAY_MS, NOW]) await signIn(createdAt)
    const due = await claim(id)
    const delivered = due.filter(({ event }) => Date.parse(event.timestamp) !== NOW - 40 * DAY_MS).slice(1)
    for (const webhook of delivered) await webhooks.settle(outcomeOf(webhook))
    await webhooks.forget({ deliveredBefore: NOW - 2 * DAY_MS, before: NOW - 30 * DAY_MS })
    expect(await count()).toBe(2)
  })
})
