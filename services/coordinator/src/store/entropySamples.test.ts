import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestWitness, NOW, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createSampleClaims } from './entropySamples.ts'
import { openDatabase } from './openDatabase.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

describe('old claims', () => {
  let subject: TestStore
  let db: TestStore['database']['db']
  let claimSamples: ReturnType<typeof createSampleClaims>
  let now = NOW

  beforeAll(async () => {
    subject = await startTestStore()
    db = subject.database.db
    claimSamples = createSampleClaims(db)
  })
  afterAll(() => subject?.stop())
  beforeEach(async () => {
    await sql`delete from entropy_samples`.execute(db)
    // Each test starts when the next deletion is due.
    now += 2 * HOUR
  })

  const claimOne = (at: number) => claimSamples([createTestWitness()], at)

  /** Claims that have accumulated for a long time. */
  async function insertClaims(count: number, claimedAt: number) {
    const hashes = Array.from({ length: count }, () => randomBytes(32).toString('hex'))
    await sql`insert into entropy_samples (entropy_hash, claimed_at)
      select decode(hash, 'hex'), ${new Date(claimedAt)}::timestamptz from unnest(${hashes}::text[]) as hash`.execute(
      db,
    )
  }

  async function countClaims(): Promise<number> {
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from entropy_samples`.execute(db)
    return rows[0]?.count ?? 0
  }

  test('are deleted with the next claim after a day, to the second', async () => {
    await insertClaims(3, now - DAY - 1_000)
    await insertClaims(2, now - DAY + 1_000)
    expect(await claimOne(now)).toHaveLength(1)
    expect(await countClaims()).toBe(3)
  })

  test('are searched once an hour', async () => {
    await claimOne(now)
    await insertClaims(3, now - 2 * DAY)
    await claimOne(now + HOUR - 1)
    expect(await countClaims()).toBe(5)
    await claimOne(now + HOUR)
    expect(await countClaims()).toBe(3)
  })

  test('are deleted in limited batches, with every claim while there are more', async () => {
    await insertClaims(4_096 + 5, now - 2 * DAY)
    await claimOne(now)
    expect(await countClaims()).toBe(5 + 1)
    await claimOne(now + 1)
    expect(await countClaims()).toBe(2)
    await insertClaims(1, now - 2 * DAY)
    await claimOne(now + 2)
    expect(await countClaims()).toBe(4)
  })

  test('does not return a sample whose claim is deleted in the same call', async () => {
    const witness = createTestWitness()
    await claimSamples([witness], now)
    await sql`update entropy_samples set claimed_at = ${new Date(now - 2 * DAY)}::timestamptz`.execute(db)
    expect(await claimSamples([witness], now + HOUR)).toEqual([])
    expect(await countClaims()).toBe(0)
  })

  test('a coordinator whose clock runs ahead deletes none', async () => {
    const realNow = Date.now()
    await insertClaims(3, realNow)
    await claimOne(realNow + 30 * DAY)
    expect(await countClaims()).toBe(4)
    // After a correction it need not wait 30 days for the next deletion.
    await insertClaims(2, realNow - 2 * DAY)
    await claimOne(realNow)
    expect(await countClaims()).toBe(5)
    now = realNow
  })

  test('claims succeed even if the deletion fails', async () => {
    await sql`create function refuse_pruning() returns trigger language plpgsql as
      $$ begin raise exception 'not now'; end $$`.execute(db)
    await sql`create trigger refuse_pruning before delete on entropy_samples
      for each row execute function refuse_pruning()`.execute(db)
    try {
      await insertClaims(1, NOW - 2 * DAY)
      expect(await claimOne(now)).toHaveLength(1)
      expect(await countClaims()).toBe(2)
    } finally {
      await sql`drop trigger refuse_pruning on entropy_samples`.execute(db)
    }
  })

  test('two coordinators can delete concurrently', async () => {
    await insertClaims(6_000, NOW - 2 * DAY)
    const other = await openDatabase(subject.options)
    try {
      await Promise.all([claimOne(now), createSampleClaims(other.db)([createTestWitness()], now)])
      expect(await countClaims()).toBe(2)
    } finally {
      await other.close()
    }
  })
})
