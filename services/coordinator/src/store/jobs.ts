import type { Log } from '@countersign/service'
import { CompiledQuery, type Transaction } from 'kysely'
import { type Db, PgBoss } from 'pg-boss'
import { toDatabaseError, toErrorCode } from './databaseError.ts'
import { type Database, PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'

/** Proofs whose receipt is to be pinned. One job covers a few that were signed together. */
export const PIN_QUEUE = 'pin'
/** Policies of vaults to pin, one job each. */
export const POLICY_QUEUE = 'policy'
/** Publishes everything that is pinned and unpublished. At most one job waits. */
export const PUBLISH_QUEUE = 'publish'
/** Checks publications that are not final. At most one job waits. */
export const CONFIRM_QUEUE = 'confirm'

/** A job goes to another worker after this much silence. */
const HEARTBEAT_SECONDS = 10
const HEARTBEAT_EVERY_SECONDS = 3
/** How often to check for silent workers. */
const SUPERVISE_SECONDS = 5
/** A job costs the database about half as much as a proof, and is retried as a whole. */
const PROOFS_OF_JOB = 8
/** The minimum that pg-boss allows. */
const POLL_SECONDS = 0.5
const STOP_MS = 10_000
/**
 * pg-boss counts all finished jobs every few seconds. It keeps them for a week by default, which takes seconds per count at a million proofs.
 */
const KEEP_FINISHED_SECONDS = 600
/** How often finished jobs are deleted. */
const DELETE_EVERY_SECONDS = 60
/** For queries of active jobs, such as the sweep's. pg-boss has no index without the finished ones. */
const ACTIVE_INDEX = 'job_active'

const shared = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  expireInSeconds: 600,
  retryLimit: 3,
  retryDelay: 1,
  deleteAfterSeconds: KEEP_FINISHED_SECONDS,
}

const queues = {
  [PIN_QUEUE]: shared,
  [POLICY_QUEUE]: shared,
  [PUBLISH_QUEUE]: { policy: 'short', ...shared },
  [CONFIRM_QUEUE]: { policy: 'short', ...shared },
}

export type QueueName = keyof typeof queues
type NewJob = { data: object; startAfter?: number }

type JobsOptions = { pipelineDelayMs: number; isWorker?: boolean | undefined; log?: Pick<Log, 'warn'> | undefined }

/** The parts of the job queue that the signing statement needs. */
export type Jobs = {
  /**
   * SQL that writes pin jobs for the `slug`s of a relation. It is part of the statement that inserts the proofs, so proofs and jobs are
   * committed together.
   */
  insertPins(relation: string): string
  /** Writes jobs in the transaction that writes their rows. `startAfter` is in seconds from now. */
  insert(transaction: Transaction<Tables>, queue: QueueName, jobs: readonly NewJob[]): Promise<void>
  /** Passes jobs to a worker, several at a time. If the worker throws, pg-boss retries them. */
  work(
    queue: QueueName,
    options: { batchSize: number; concurrency: number },
    run: (data: unknown[]) => Promise<void>,
  ): Promise<void>
  /** Stops passing jobs and waits up to ten seconds for those in progress. Repeated calls wait for the first. Jobs can still be written. */
  stop(): Promise<void>
}

/** Creates pg-boss on an open database. Only workers do its maintenance. */
function createBoss({ bossDatabase }: Database, { isWorker = false, log }: JobsOptions): PgBoss {
  const boss = new PgBoss({
    db: bossDatabase,
    backend: 'postgres',
    supervise: isWorker,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    maintenanceIntervalSeconds: DELETE_EVERY_SECONDS,
  })
  boss.on('error', (error) => log?.warn({ msg: 'Lost a job queue call', code: toErrorCode(error) }))
  return boss
}

/** Starts pg-boss and creates its schema and queues. */
export async function openJobs(database: Database, options: JobsOptions): Promise<Jobs> {
  const { pipelineDelayMs, log } = options
  const boss = createBoss(database, options)
  let insertSql = ''
  try {
    await database.exclusively(async () => {
      await boss.start()
      for (const [name, options] of Object.entries(queues)) await boss.createQueue(name, options)
      await createActiveIndex(database, log)
    })
    insertSql = await readInsertSql(boss)
    // Inserting no jobs loads a queue into pg-boss's cache. Loading it later, inside a transaction, would need a second connection while
    // transactions may hold the whole pool.
    for (const name of Object.keys(queues)) await boss.insert(name, [])
  } catch (error) {
    await stop()
    throw toDatabaseError(error)
  }
  return {
    insertPins: (relation) => insertSql.replace(JOBS_PARAMETER, () => toJobsExpression(relation, pipelineDelayMs)),
    async insert(transaction, queue, jobs) {
      await boss.insert(queue, [...jobs], { db: toBossDatabase(transaction) })
    },
    async work(queue, { batchSize, concurrency }, run) {
      const polling = {
        pollingIntervalSeconds: POLL_SECONDS,
        burstWhenBatchFull: true,
        heartbeatRefreshSeconds: HEARTBEAT_EVERY_SECONDS,
      }
      await boss.work(queue, { batchSize, localConcurrency: concurrency, ...polling }, async (jobs) => {
        await run(jobs.map(({ data }) => data))
      })
    },
    stop,
  }

  async function stop() {
    await boss.stop({ graceful: options.isWorker === true, timeout: STOP_MS, close: false }).catch(() => {})
  }
}

/**
 * Check first: `create index` waits for every writer of jobs even if the index exists, and later writers wait behind it. The index is only
 * for speed, so a failure can wait for the next start.
 */
async function createActiveIndex({ bossDatabase }: Database, log: JobsOptions['log']): Promise<void> {
  const { rows } = await bossDatabase.executeSql(`select to_regclass('pgboss.${ACTIVE_INDEX}') is not null as is_there`)
  if (rows[0]?.is_there === true) return
  const create = `create index ${ACTIVE_INDEX} on pgboss.job (name) where state = 'active'`
  await bossDatabase.executeSql(`set local lock_timeout = '2s'; ${create}`).catch((error: unknown) => {
    log?.warn({ msg: 'Could not create an index', code: toErrorCode(error) })
  })
}

/** The parameter of pg-boss's statement that holds the jobs as one JSON text. */
const JOBS_PARAMETER = '$1::text::json'

/** Captures the SQL that pg-boss uses to insert jobs, by inserting none. */
async function readInsertSql(boss: PgBoss): Promise<string> {
  let insertSql = ''
  const listener: Db = {
    async executeSql(text) {
      insertSql = text
      return { rows: [] }
    },
  }
  await boss.insert(PIN_QUEUE, [], { db: listener })
  if (insertSql.split(JOBS_PARAMETER).length !== 2)
    throw new Error('pg-boss inserts jobs in a way that is not known here')
  return insertSql
}

function toJobsExpression(relation: string, pipelineDelayMs: number): string {
  return `(
    select coalesce(json_agg(job), '[]') from (
      select json_build_object('data', json_build_object('slugs', json_agg(slug)), 'startAfter', '${pipelineDelayMs / 1000}') as job
      from (select slug, (row_number() over () - 1) / ${PROOFS_OF_JOB} as number from ${relation}) as numbered
      group by number
    ) as jobs
  )`
}

function toBossDatabase(transaction: Transaction<Tables>): Db {
  return {
    async executeSql(text, values = []) {
      const { rows } = await transaction.executeQuery(CompiledQuery.raw(`${PREPARED}${text}`, [...values]))
      return { rows }
    },
  }
}
