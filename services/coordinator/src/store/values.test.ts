import { listTreeNodes } from '@countersign/log'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestLog } from '../../test/store/logs.ts'
import {
  createTestBatch,
  createTestSession,
  createTestSigning,
  createTestUser,
  createTestWallet,
  createTestWitness,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { createNodeReader } from './logTiles.ts'

/** PostgreSQL tries this many custom plans before it compares them with a generic plan. */
const TRIED = 5
const TIMES = 12

describe('prepared statements on PostgreSQL', () => {
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
  })
  afterAll(() => subject.stop())

  /** Of each statement that ran often. Sequential calls use the same connection. */
  async function listPlans() {
    const { rows } = await sql<{ statement: string; generic_plans: number; custom_plans: number }>`
      select statement, generic_plans::int, custom_plans::int from pg_prepared_statements
      where generic_plans + custom_plans >= ${TIMES} order by statement`.execute(subject.database.db)
    return rows
  }

  test('with lists of any length share one generic plan', async () => {
    const { store, logStore, database } = subject
    const user = await store.upsertUser(createTestUser())
    const session = createTestSession(user, { expiresAt: NOW + 43_200_000 })
    await store.createSession(session)
    const wallet = await createTestWallet(store)
    const signing = createTestSigning(wallet)
    await store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const log = createTestLog()
    log.fill(5)
    await logStore.appendLog(log.toAppend())

    for (let count = 1; count <= TIMES; count++) {
      log.fill(count % 3)
      await logStore.appendLog(log.toAppend({ from: 5 }))
      const asked = Array.from({ length: 1 + (count % 3) }, () => ({
        sidHash: session.sidHash,
        digest: signing.statement.digest,
      }))
      await store.findSigners({ queries: asked, now: NOW, idleMs: 7_200_000 })
      await store.findProofStates([signing.slug])
      await store.claimSamples([createTestWitness()], NOW)
      // New each time, because it caches what it has read.
      await createNodeReader(database.db)(log.hash, listTreeNodes(5))
      await logStore.findCosigned(log.hash)
    }

    const plans = await listPlans()
    expect(plans.length).toBe(6)
    expect(plans.filter(({ custom_plans }) => custom_plans !== TRIED)).toEqual([])
  })

  test('in the functions of logs keep one plan, too, by a setting of each function', async () => {
    const { rows } = await sql`select distinct proname from pg_proc
      where proconfig @> array['plan_cache_mode=force_generic_plan'] order by proname`.execute(subject.database.db)
    expect(rows.map((row) => (row as { proname: string }).proname)).toEqual([
      'append_log',
      'read_log_entries',
      'take_claims',
    ])
  })
})
