import { hash } from 'node:crypto'
import type { Log } from '@countersign/service'
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Db } from 'pg-boss'
import { toDatabaseError, toErrorCode } from './databaseError.ts'
import { migrate } from './migrate.ts'
import type { Tables } from './tables.ts'

export type OpenDatabaseOptions = {
  databaseUrl: string
  /** Connections to PostgreSQL. */
  poolSize?: number
  /** How long PostgreSQL may work on one statement. */
  statementTimeoutMs?: number
  log?: Pick<Log, 'warn'>
}

/** Connections to PostgreSQL, and callers that wait for one. */
export type ConnectionCount = { used: number; idle: number; waiting: number; limit: number }

/** One open database, with our schema in it. */
export type Database = {
  readonly db: Kysely<Tables>
  /** The same database as pg-boss wants it, outside of any transaction. */
  readonly bossDatabase: Db
  countConnections(): ConnectionCount
  /** Runs something that only one of all coordinators may do at a time. The database it is given does not limit how long a statement takes. */
  exclusively<T>(run: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Statements that begin with this are prepared once for each connection. */
export const PREPARED = '/* prepared */'

/**
 * Every statement of ours finds its rows by a key. The planner goes by what the tables held at the last count, and would read a
 * young table whole; a prepared plan would go on doing so while it grows.
 */
const PLANNER = 'enable_seqscan=off'

/** To compile a statement takes tens of milliseconds at each run, and ours run for one. */
const COMPILER = 'jit=off'

/** Whatever the server's own setting: an answer that was given must survive the server's death. */
const DURABILITY = 'synchronous_commit=on'

/** Any number, the same in every coordinator. */
const SCHEMA_LOCK = 0x636f_756e
const CONNECT_TIMEOUT_MS = 5_000
/** Of silence, until the system asks whether a server is still there; by its own default two hours. */
const KEEP_ALIVE_MS = 10_000
/** PostgreSQL's `read_only_sql_transaction`: a server that is a standby, or has become one. */
const READ_ONLY = '25006'
const STATEMENT_TIMEOUT_MS = 30_000
/** How long a change of the schema waits for a table that others use. */
const LOCK_TIMEOUT_MS = 5_000

/** Connects to PostgreSQL, and brings the schema up to date. */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const database = connectPostgres(options)
  try {
    await database.exclusively(migrate)
    return database
  } catch (error) {
    await database.close().catch(() => {})
    throw toDatabaseError(error)
  }
}

/** The database as it is: the first statement connects, and the schema is left alone. */
export function connectPostgres(options: OpenDatabaseOptions): Database {
  const { databaseUrl, poolSize = 10, statementTimeoutMs = STATEMENT_TIMEOUT_MS, log } = options
  const pool = createPool(databaseUrl, log, {
    max: poolSize,
    statement_timeout: statementTimeoutMs,
    // A coordinator that froze in a transaction must not hold its rows against the others.
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // For a server that is gone without a word.
    query_timeout: statementTimeoutMs + CONNECT_TIMEOUT_MS,
  })
  const db = createKysely(pool)
  return {
    db,
    bossDatabase: {
      async executeSql(text, values) {
        // The driver answers a list when the text has several statements.
        const result: pg.QueryResult | pg.QueryResult[] = await pool.query(text, values as unknown[])
        return { rows: Array.isArray(result) ? result.flatMap(({ rows }) => rows) : result.rows }
      },
    },
    countConnections: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      limit: poolSize,
    }),
    async exclusively(run) {
      // With no limit to a statement: an index of a large table takes its time, and waiting for others is no fault. But what waits for a
      // table stops all that come to it later.
      const patient = createPool(databaseUrl, log, {
        max: 2,
        idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
        settings: ['statement_timeout=0', `lock_timeout=${LOCK_TIMEOUT_MS}`],
      })
      try {
        const client = await patient.connect()
        try {
          await client.query('set lock_timeout = 0')
          await client.query('select pg_advisory_lock($1)', [SCHEMA_LOCK])
          return await run(createKysely(patient))
        } finally {
          // The lock goes with the connection.
          client.release(true)
        }
      } finally {
        await patient.end()
      }
    },
    close: once(() => pool.end()),
  }
}

function createPool(
  databaseUrl: string,
  log: OpenDatabaseOptions['log'],
  { settings = [], ...limits }: pg.PoolConfig & { settings?: readonly string[] },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    application_name: 'countersign',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // An address may lead to a standby for a while: it would serve reads, of the past, and refuse every write.
    verify: (client, done) => void assertWritable(client).then(() => done(), done),
    options: [PLANNER, COMPILER, DURABILITY, ...settings].map((setting) => `-c ${setting}`).join(' '),
    ...limits,
  })
  const reportLoss = (error: Error) => {
    log?.warn({ msg: 'Lost a database connection', code: toErrorCode(error) })
  }
  // Unheard errors would end the process: of idle connections here, of those in a transaction between two statements below.
  pool.on('error', reportLoss)
  pool.on('connect', (client) => client.on('error', reportLoss))
  return pool
}

function createKysely(pool: pg.Pool): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: createPreparingPool(pool) }) })
}

async function assertWritable(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ isStandby: boolean }>('select pg_is_in_recovery() as "isStandby"')
  if (rows[0]?.isStandby !== false) {
    throw Object.assign(new Error('the database is a standby'), { code: READ_ONLY })
  }
}

/** Kysely has no names for statements; the driver needs one to prepare them. */
function createPreparingPool(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect()
      let loss: unknown
      async function query(text: string, values: unknown[]) {
        // As the rollback after a statement that was never answered: it would wait behind that one.
        if (loss !== undefined) throw loss
        try {
          return await (text.startsWith(PREPARED)
            ? client.query({ name: toName(text), text, values })
            : client.query(text, values))
        } catch (error) {
          if (isLoss(error)) loss = error
          throw error
        }
      }
      return { query, release: () => client.release(loss !== undefined) } as unknown as PostgresPoolClient
    },
  }
}

/**
 * Whether a connection is of no more use after this. The server says so before the socket does; and what is no answer of the server at
 * all, such as a time limit of ours, leaves its answer to come, which the next statement would wait for.
 */
function isLoss(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true
  return error.severity === 'FATAL' || error.severity === 'PANIC' || error.code === READ_ONLY
}

/** By content: two programs of different versions behind one connection pooler never mean different texts by one name. */
function toName(text: string): string {
  return `countersign_${hash('sha256', text).slice(0, 32)}`
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined
  return () => {
    closed ??= close()
    return closed
  }
}
