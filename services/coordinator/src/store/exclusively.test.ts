import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestLog } from '../../test/store/logs.ts'
import { randomHex, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createLogStore } from './logs.ts'
import { type Database, openDatabase } from './openDatabase.ts'

describe('exclusive work on a log', () => {
  let subject: TestStore
  let other: Database
  beforeAll(async () => {
    subject = await startTestStore()
    other = await openDatabase(subject.options)
  })
  afterAll(async () => {
    await other.close()
    await subject.stop()
  })

  /** A coordinator that waits long enough for the others, even on a busy machine. */
  const createPatient = (database: Database) => createLogStore(database, { askerWaitMs: 25_000 })

  /** Starts, reports when it runs, and ends on request. */
  function hold(hash: string, database = subject.database) {
    const { promise: running, resolve: begin } = Promise.withResolvers<void>()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const done = createLogStore(database).exclusively(hash, async () => {
      begin()
      await released
    })
    return { running, release, done }
  }

  test('waits for the other to end', async () => {
    const hash = randomHex(32)
    const events: string[] = []
    const first = hold(hash)
    await first.running
    const second = createPatient(other).exclusively(hash, async () => events.push('second'))
    await expect.poll(() => countLocks(hash, false)).toBe(1)
    events.push('first')
    first.release()
    await Promise.all([first.done, second])
    expect(events).toEqual(['first', 'second'])
  })

  test('20 concurrent runs never overlap, and each returns its own result', async () => {
    const hash = randomHex(32)
    let running = 0
    let most = 0
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        createPatient(index % 2 === 0 ? subject.database : other).exclusively(hash, async () => {
          running += 1
          most = Math.max(most, running)
          await new Promise(setImmediate)
          running -= 1
          return index
        }),
      ),
    )
    expect(most).toBe(1)
    expect(results).toEqual(Array.from({ length: 20 }, (_, index) => index))
  })

  test('delays neither other logs nor appends to the same log', async () => {
    const log = createTestLog()
    const first = hold(log.hash)
    await first.running
    const second = hold(randomHex(32), other)
    await second.running
    expect(await createLogStore(other).appendLog(log.toAppend())).toEqual({ lost: [] })
    first.release()
    second.release()
    await Promise.all([first.done, second.done])
  })

  test('runs anyway after two seconds of waiting for a frozen holder', async () => {
    const hash = randomHex(32)
    const frozen = hold(hash)
    await frozen.running
    const events: string[] = []
    await createLogStore(other).exclusively(hash, async () => events.push('waited'))
    frozen.release()
    await frozen.done
    events.push('held')
    expect(events).toEqual(['waited', 'held'])
  })

  test('a holder whose connection is cut loses the lock but not its result', async () => {
    const hash = randomHex(32)
    const { promise: cut, resolve } = Promise.withResolvers<void>()
    const first = createLogStore(subject.database).exclusively(hash, async () => {
      await cut
      return 'cosigned'
    })
    await expect.poll(() => countLocks(hash, true)).toBe(1)
    await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and classid = ${LOCK}
      and objid = ${toKey(hash)}::bigint`.execute(other.db)
    await createLogStore(other).exclusively(hash, async () => {})
    resolve()
    await expect(first).resolves.toBe('cosigned')
  })

  test('passes on a failure and releases the lock', async () => {
    const hash = randomHex(32)
    const failure = new Error('no witness')
    await expect(subject.logStore.exclusively(hash, () => Promise.reject(failure))).rejects.toBe(failure)
    expect(await countLocks(hash, true)).toBe(0)
  })

  test('returns database_unavailable without running if the database is down', async () => {
    const gone = await openDatabase(subject.options)
    const store = createLogStore(gone)
    await gone.close()
    let hasRun = false
    const run = store.exclusively(randomHex(32), async () => {
      hasRun = true
    })
    await expect(run).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(hasRun).toBe(false)
  })

  const LOCK = 0x6c_6f_67_02
  /** In the unsigned form of pg_locks. */
  const toKey = (hash: string) => Number.parseInt(hash.slice(0, 8), 16)

  async function countLocks(hash: string, isGranted: boolean): Promise<number> {
    const { rows } = await sql`select from pg_locks where locktype = 'advisory' and classid = ${LOCK}
      and objid = ${toKey(hash)}::bigint and granted = ${isGranted}`.execute(other.db)
    return rows.length
  }
})
