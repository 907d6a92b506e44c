import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completeRow, pinRows } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSession,
  createTestSigning,
  createTestUser,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import {
  countWebhooks,
  createWebhookEvents,
  createWebhookStore,
  type DueWebhook,
  listWebhooks,
  retryWebhooks,
  type WebhookStore,
} from './webhooks.ts'

const DAY_MS = 86_400_000

describe('webhooks', () => {
  let subject: TestStore
  let webhooks: WebhookStore
  beforeAll(async () => {
    subject = await startTestStore()
    webhooks = createWebhookStore(subject.database.db)
  })
  afterAll(() => subject.stop())

  const count = async () =>
    Number((await sql<{ n: string }>`select count(*) as n from webhook_events`.execute(subject.database.db)).rows[0]?.n)
  const events = () => createWebhookEvents(subject.database.db)
  const receiver = (origin: string) => ({ urlHash: randomHex(32), origin })

  /** New receivers without webhooks. */
  async function register(...origins: string[]) {
    const receivers = origins.map(receiver)
    return (await webhooks.register({ receivers, keys: [Buffer.alloc(32, 1)], now: NOW })).ids
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

  test('writes nothing without receivers', async () => {
    await webhooks.register({ receivers: [], keys: [], now: NOW })
    await signIn()
    await events().write('publisher.short_of_gas', { account: '0xaa', chainId: 1, balanceWei: '0' }, NOW)
    expect(await count()).toBe(0)
    expect(await events().findKeys()).toEqual([])
  })

  test('notifies each receiver of a sign-in, with only the address', async () => {
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

  test('does not notify of a sign-in that is rolled back', async () => {
    const [id = 0] = await register('https://one.example')
    const user = await subject.store.upsertUser(createTestUser())
    const before = await count()
    const session = createTestSession(user)
    await subject.store.createSession(session)
    // The same again: the database rejects the row, and with it its event.
    await expect(subject.store.createSession(session)).rejects.toThrow()
    expect([await count(), (await claim(id)).length]).toEqual([before + 1, 1])
  })

  test.each([
    ['complete', 'proof.complete', { onchainTxHash: `0x${'ab'.repeat(32)}`, onchainBlockNumber: 7 }],
    ['onchain_failed', 'proof.failed', { failure: 'publish_reverted' }],
    ['pin_failed', 'proof.failed', { failure: 'pin_refused', ipfsCid: null }],
  ] as const)('notifies once of a proof that is %s, in the transaction that changes it', async (status, type, rest) => {
    const [id = 0] = await register('https://one.example')
    const wallet = await createTestWallet(subject.store)
    const { slug, statement } = createTestSigning(wallet)
    const signing = { ...createTestSigning(wallet), slug, statement }
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const set = (text: string) => subject.query(`update proofs set ${text} where slug = '${slug}'`)
    if (status === 'pin_failed') await set(`status = 'pin_failed', failure = 'pin_refused'`)
    else {
      await pinRows(subject.database.db, [slug], { toCid: () => 'bafkcid' })
      expect(await claim(id)).toEqual([])
      const finish = async (db: TestStore['database']['db']) => {
        if (status === 'complete') await completeRow(db, slug)
        else
          await sql`update proofs set status = ${status}, failure = 'publish_reverted' where slug = ${slug}`.execute(db)
      }
      const undone = subject.database.db.transaction().execute(async (transaction) => {
        await finish(transaction)
        throw new Error('undone')
      })
      await expect(undone).rejects.toThrow('undone')
      expect(await claim(id)).toEqual([])
      await finish(subject.database.db)
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

  test('warns once a day, even for concurrent warnings', async () => {
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

  test('notifies of each refusal of a vault, at most 60 per vault and hour', async () => {
    const [id = 0] = await register('https://one.example')
    const refusal = (walletAddress: `0x${string}`) =>
      events().write('vault.refused', { walletAddress, policyHash: '00', kind: 'message', code: 'policy_refused' }, NOW)
    for (let index = 0; index < 65; index++) await refusal('0xaa')
    await refusal('0xbb')
    expect(await claim(id)).toHaveLength(61)
  })

  test('no other worker gets a claimed webhook before its lease ends', async () => {
    const [id = 0] = await register('https://one.example')
    await signIn()
    const claims = await Promise.all([claim(id), claim(id), claim(id)])
    expect(claims.flat()).toHaveLength(1)
    expect(await claim(id)).toEqual([])
    await subject.query(`update webhook_deliveries set due_at = now() - interval '1 second' where receiver_id = ${id}`)
    expect(await claim(id)).toMatchObject([{ attempts: 2 }])
  })

  test('a delivered webhook stays delivered; a failed one is retried until its deadline', async () => {
    const [id = 0, other = 0] = await register('https://one.example', 'https://two.example')
    await signIn()
    const [one, two] = [(await claim(id))[0], (await claim(other))[0]] as [DueWebhook, DueWebhook]
    expect(await webhooks.recordOutcome(outcomeOf(one, { failure: 'status_500' }))).toBe('pending')
    expect(await claim(id)).toMatchObject([{ attempts: 2 }])
    expect(await webhooks.recordOutcome(outcomeOf(one))).toBe('delivered')
    expect(await webhooks.recordOutcome(outcomeOf(one, { failure: 'timed_out' }))).toBe('delivered')
    expect(await claim(id)).toEqual([])
    expect(
      await webhooks.recordOutcome({ ...outcomeOf(two, { failure: 'timed_out', deadlineMs: 1000 }), delayMs: 5000 }),
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
    await webhooks.recordOutcome(outcomeOf(two))
  })

  test('does not send to a receiver that the settings no longer list', async () => {
    await subject.query('delete from webhook_events')
    const [id = 0] = await register('https://gone.example')
    await signIn()
    const [one] = (await claim(id)) as [DueWebhook]
    await webhooks.recordOutcome({ ...outcomeOf(one, { failure: 'timed_out', deadlineMs: 0 }), delayMs: 5000 })
    await register('https://one.example')
    expect(await retryWebhooks(subject.database.db, { id: one.event.id })).toBe(0)
    expect(await retryWebhooks(subject.database.db, { id: undefined })).toBe(0)
    expect(await listWebhooks(subject.database.db, { status: 'dead', limit: 10 })).toMatchObject([
      { id: one.event.id, isActive: false },
    ])
  })

  test('counts a backlog of any size from the indexes, up to a limit', async () => {
    const [id = 0] = await register('https://full.example')
    await subject.query(`with e as (
        insert into webhook_events (type, data, created_at)
        select 'session.created', '{}', now() from generate_series(1, 20100) returning id
      )
      insert into webhook_deliveries (event_id, receiver_id, status, settled_at, queued_at)
      select id, ${id}, case when n % 2 = 0 then 'pending' else 'dead' end, case when n % 2 = 0 then null else now() end,
        timestamptz '2025-01-01' + n * interval '1 second'
      from (select id, row_number() over () as n from e) as numbered`)
    await subject.query('analyze webhook_deliveries')
    expect(await countWebhooks(subject.database.db)).toEqual([
      {
        receiver: 'https://full.example',
        pending: 10_000,
        dead: 10_000,
        oldestAt: Date.parse('2025-01-01T00:00:02Z'),
      },
    ])
    const { rows } = await sql<Record<string, string>>`explain select min(queued_at) from webhook_deliveries
      where receiver_id = ${sql.lit(id)} and status = 'pending'`.execute(subject.database.db)
    expect(rows.flatMap(Object.values).join('\n')).toMatch(/Limit[\s\S]*webhook_deliveries_pending/)
    await subject.query('delete from webhook_events')
  })

  test('removed receivers get nothing new, and when they return they get what was waiting', async () => {
    const [one, two] = [receiver('https://one.example'), receiver('https://two.example')]
    const keys = [Buffer.alloc(32, 2), Buffer.alloc(32, 3)]
    const {
      ids: [id = 0],
    } = await webhooks.register({ receivers: [one], keys, now: NOW })
    expect(await events().findKeys()).toEqual(keys.map((key) => new Uint8Array(key)))
    await signIn()
    const {
      ids: [other = 0],
      switchedOff,
    } = await webhooks.register({ receivers: [two], keys: keys.slice(1), now: NOW })
    expect([switchedOff, await webhooks.countInactive([id, other]), await webhooks.countInactive([other])]).toEqual([
      1, 1, 0,
    ])
    await signIn()
    expect(await events().findKeys()).toEqual([new Uint8Array(32).fill(3)])
    const back = await webhooks.register({ receivers: [two, one], keys, now: NOW })
    expect(back).toEqual({ ids: [other, id], switchedOff: 0 })
    expect([(await claim(id)).length, (await claim(other)).length]).toEqual([1, 1])
  })

  describe('deleting', () => {
    const age = (days: number) => `now() - interval '${days} days'`
    const term = () => ({ deliveredBefore: Date.now() - 2 * DAY_MS, queuedBefore: Date.now() - 30 * DAY_MS })
    const left = async (id: number) => {
      const found = sql<{ n: string }>`select count(*) as n from webhook_deliveries where receiver_id = ${id}`
      return Number((await found.execute(subject.database.db)).rows[0]?.n)
    }

    /** Sign-ins with each of these states at each of these receivers, this many days old. */
    async function add(status: 'pending' | 'delivered' | 'dead', days: number, ids: readonly number[]) {
      await signIn()
      const [latest] = (
        await sql<{ event_id: string }>`select event_id from webhook_deliveries
          where receiver_id = ${ids[0]} and due_at <= now() and status = 'pending' and queued_at > now() - interval '1 hour'
          `.execute(subject.database.db)
      ).rows
      const settled = status === 'pending' ? 'null' : age(days)
      await subject.query(`update webhook_deliveries set status = '${status}', queued_at = ${age(days)}, settled_at = ${settled}
        where event_id = '${latest?.event_id}' and receiver_id in (${ids.join()})`)
      return latest?.event_id ?? ''
    }

    test('deletes delivered ones after two days, others after 30, and an event with its last row', async () => {
      const [id = 0, other = 0] = await register('https://one.example', 'https://two.example')
      await subject.query('delete from webhook_events')
      await add('delivered', 1, [id, other])
      await add('delivered', 3, [id, other])
      const mixed = await add('dead', 3, [id, other])
      await subject.query(
        `update webhook_deliveries set status = 'delivered' where event_id = '${mixed}' and receiver_id = ${id}`,
      )
      await add('pending', 29, [id, other])
      await add('pending', 31, [id, other])
      await add('dead', 31, [id, other])
      expect(await webhooks.forget(term())).toEqual({ undelivered: 4, isOver: true })
      expect([await count(), await left(id), await left(other)]).toEqual([3, 2, 3])
      expect(await webhooks.forget(term())).toEqual({ undelivered: 0, isOver: true })
    })

    test('a webhook that was sent again counts from then', async () => {
      const [id = 0] = await register('https://one.example')
      await subject.query('delete from webhook_events')
      const event = await add('dead', 29, [id])
      await subject.query(`update webhook_deliveries set queued_at = ${age(31)} where event_id = '${event}'`)
      expect(await retryWebhooks(subject.database.db, { id: event })).toBe(1)
      expect(await webhooks.forget(term())).toEqual({ undelivered: 0, isOver: true })
      expect(await claim(id)).toMatchObject([{ event: { id: event } }])
    })

    test('returns whether more remain, and two concurrent calls delete all', async () => {
      const [id = 0, other = 0] = await register('https://one.example', 'https://two.example')
      await subject.query('delete from webhook_events')
      for (let index = 0; index < 5; index++) await add('delivered', 3, [id, other])
      const forget = () => webhooks.forget({ ...term(), limit: 4 })
      expect(await forget()).toEqual({ undelivered: 0, isOver: false })
      expect((await left(id)) + (await left(other))).toBe(6)
      let isOver = false
      while (!isOver) {
        const both = await Promise.all([forget(), forget()])
        isOver = both.every((one) => one.isOver) && (await left(id)) + (await left(other)) === 0
      }
      expect(await count()).toBe(0)
    })
  })
})
