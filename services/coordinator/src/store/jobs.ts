import type { Log } from '@countersign/service'
import { CompiledQuery, type Transaction } from 'kysely'
import { type Db, PgBoss } from 'pg-boss'
import { toDatabaseError, toErrorCode } from './databaseError.ts'
import { type Database, PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'

/** Proofs whose receipt is to be pinned: one job for a few that were signed together. */
export const PIN_QUEUE = 'pin'
/** Policies of vaults whose block is to be pinned: one job each. */
export const POLICY_QUEUE = 'policy'
/** Whatever is pinned and waits for a publication: at most one job waits. */
export const PUBLISH_QUEUE = 'publish'
/** Publications that are not final yet: at most one job waits. */
export const CONFIRM_QUEUE = 'confirm'

/** A job whose worker has been silent for so long is given to another. */
const HEARTBEAT_SECONDS = 10
const HEARTBEAT_EVERY_SECONDS = 3
/** How often silent workers are looked for. */
const SUPERVISE_SECONDS = 5
/** A job costs the database as much as half a proof, and is tried again as a whole. */
const PROOFS_OF_JOB = 8
/** The least that pg-boss allows. */
const POLL_SECONDS = 0.5
const STOP_MS = 10_000
/**
 * Nobody reads a finished job, but pg-boss counts all that it keeps every few seconds: by its default a week of them, which at a
 * million proofs takes seconds each time.
 */
const KEEP_FINISHED_SECONDS = 600
/** How often finished jobs are deleted. */
const DELETE_EVERY_SECONDS = 60
/** For queries of active jobs, as the sweep makes: pg-boss has no index that leaves out the finished ones. */
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

/** What the signing statement needs of the job queue. */
export type Jobs = {
  /**
   * SQL that writes pin jobs for the `slug`s of a relation. It goes into the statement that inserts the proofs, or finds them without
   * a job: jobs are there when the proofs are, or not at all.
   */
  insertPins(relation: string): string
  /** Writes jobs inside a transaction, with the rows that they are about. `startAfter` is in seconds from now. */
  insert(transaction: Transaction<Tables>, queue: QueueName, jobs: readonly NewJob[]): Promise<void>
  /** Hands jobs to a worker, several at a time. What it throws makes pg-boss try them again. */
  work(
    queue: QueueName,
    options: { batchSize: number; concurrency: number },
    run: (data: unknown[]) => Promise<void>,
  ): Promise<void>
  /** Hands out no more, and waits for the jobs under way, ten seconds at most. Further calls wait for the first. Jobs can still be written. */
  stop(): Promise<void>
}

/** pg-boss on an open database. Only workers do its upkeep. */
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

/** Starts pg-boss as a writer of jobs: its own schema, and the queue. */
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
    // Inserting nothing reads a queue into pg-boss's cache. Read later, inside a transaction, it would take a second connection of a pool
    // whose connections may all be in such transactions.
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
 * Asked first: creating it, even in vain, waits for every writer of jobs, and later ones wait behind that. The index is only for speed, so
 * the next start may try again.
 */
async function createActiveIndex({ bossDatabase }: Database, log: JobsOptions['log']): Promise<void> {
  const { rows } = await bossDatabase.executeSql(`select to_regclass('pgboss.${ACTIVE_INDEX}') is not null as is_there`)
  if (rows[0]?.is_there === true) return
  const create = `create index ${ACTIVE_INDEX} on pgboss.job (name) where state = 'active'`
  await bossDatabase.executeSql(`set local lock_timeout = '2s'; ${create}`).catch((error: unknown) => {
    log?.warn({ msg: 'Could not create an index', code: toErrorCode(error) })
  })
}

/** Where pg-boss's own statement takes the jobs from, as one JSON text. */
const JOBS_PARAMETER = '$1::text::json'

/** The statement with which pg-boss inserts jobs: it is asked to insert none, and what it would have sent is kept. */
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
