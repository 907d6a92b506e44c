import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pinRows } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { countOpenProofs, listProofs } from './proofs.ts'
import { enqueueMissing } from './sweep.ts'
import type { Wallet } from './wallets.ts'

describe('queries for operators and the sweep', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  async function sign(now: number) {
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now })
    return signing.slug
  }
  const jobsOf = async (name: string) => {
    const query = sql<{ slugs: string[] | null }>`
      select data -> 'slugs' as slugs from pgboss.job where name = ${name} and state < 'completed'`
    return (await query.execute(subject.database.db)).rows.flatMap(({ slugs }) => slugs)
  }

  test('counts open proofs by status, with the age of the oldest', async () => {
    await sign(NOW)
    await sign(NOW - 5_000)
    expect(await countOpenProofs(subject.database.db)).toEqual([
      { status: 'pending_pin', count: 2, oldestAt: NOW - 5_000 },
    ])
  })

  test('lists proofs by status, oldest first, up to the limit', async () => {
    const slug = await sign(NOW - 60_000)
    const [first, ...rest] = await listProofs(subject.database.db, { status: 'pending_pin', limit: 1 })
    expect(first).toEqual({
      slug,
      status: 'pending_pin',
      createdAt: NOW - 60_000,
      pinAttempts: 0,
      failure: null,
      ipfsCid: null,
      publication: undefined,
    })
    expect(rest).toEqual([])
    expect(await listProofs(subject.database.db, { status: 'complete', limit: 9 })).toEqual([])
  })

  test('a proof whose job was lost gets one new job; one with a job gets none', async () => {
    const { database, jobs } = subject
    const slug = await sign(NOW - 30_000)
    await sql`delete from pgboss.job where data -> 'slugs' ? ${slug}`.execute(database.db)
    const others = await jobsOf('pin')
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toEqual({
      pins: 1,
      policies: 0,
      hasDue: false,
      hasOpen: false,
    })
    expect((await jobsOf('pin')).toSorted()).toEqual([...others, slug].toSorted())
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ pins: 0 })
  })

  test('ignores a proof that was just signed', async () => {
    const { database, jobs } = subject
    const slug = await sign(NOW + 1_000)
    await sql`delete from pgboss.job where data -> 'slugs' ? ${slug}`.execute(database.db)
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ pins: 0 })
  })

  test('pinned and due proofs get one publish job after any number of sweeps', async () => {
    const { database, jobs } = subject
    const slug = await sign(NOW)
    await pinRows(database.db, [slug], { now: NOW })
    for (let round = 0; round < 3; round++) {
      expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ hasDue: true })
    }
    expect(await jobsOf('publish')).toHaveLength(1)
    expect(await jobsOf('confirm')).toHaveLength(0)
  })
})
