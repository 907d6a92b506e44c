import type { Transaction } from 'kysely'
import { CompiledQuery } from 'kysely'
import { type Db, PgBoss } from 'pg-boss'
import { toDatabaseError } from './databaseError.ts'
import { type Database, PREPARED, type StoreLog } from './openDatabase.ts'
import type { Tables } from './tables.ts'

/** The queue of proofs whose receipt is to be pinned. */
export const PIN_QUEUE = 'pin'
type PinJob = { slug: string }

/** What the signing transaction needs of the job queue. */
export type Jobs = {
  /** Writes one pin job for each slug, inside the transaction: they are there when the proofs are, or not at all. */
  insertPins(transaction: Transaction<Tables>, slugs: readonly string[]): Promise<void>
  stop(): Promise<void>
}

/** pg-boss on an open database, without the upkeep that belongs to those who work on the jobs. */
function createBoss({ kind, bossDatabase }: Database, log: StoreLog | undefined): PgBoss {
  const boss = new PgBoss({ db: bossDatabase, backend: kind, supervise: false, schedule: false })
  boss.on('error', (error) => log?.('Lost a job queue call', { code: 'code' in error ? error.code : undefined }))
  return boss
}

/** Starts pg-boss as a writer of jobs: its own schema, and the queue. */
export async function openJobs(
  database: Database,
  { pipelineDelayMs, log }: { pipelineDelayMs: number; log?: StoreLog | undefined },
): Promise<Jobs> {
  const boss = createBoss(database, log)
  try {
    await database.exclusively(async () => {
      await boss.start()
      await boss.createQueue(PIN_QUEUE)
    })
    // Inserting nothing reads the queue into pg-boss's cache. Read later, inside a transaction of PGlite, it would wait for the
    // one connection, which that transaction has: for ever.
    await boss.insert(PIN_QUEUE, [])
  } catch (error) {
    await stop()
    throw toDatabaseError(error)
  }
  return {
    async insertPins(transaction, slugs) {
      const startAfter = pipelineDelayMs / 1000
      const jobs = slugs.map((slug) => ({ data: { slug } satisfies PinJob, startAfter }))
      await boss.insert(PIN_QUEUE, jobs, { db: toBossDatabase(transaction) })
    },
    stop,
  }

  async function stop() {
    await boss.stop({ graceful: false, close: false }).catch(() => {})
  }
}

function toBossDatabase(transaction: Transaction<Tables>): Db {
  return {
    async executeSql(text, values = []) {
      const { rows } = await transaction.executeQuery(CompiledQuery.raw(`${PREPARED}${text}`, [...values]))
      return { rows }
    },
  }
}
