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
  /** The most connections to PostgreSQL. */
  poolSize?: number
  /** The time limit for one statement. */
  statementTimeoutMs?: number
  log?: Pick<Log, 'warn'>
}

/** Connections to PostgreSQL, and callers waiting for one. */
export type ConnectionCount = { used: number; idle: number; waiting: number; limit: number }

/** An open database with our schema. */
export type Database = {
  readonly db: Kysely<Tables>
  /** The same database in the form that pg-boss needs, outside of transactions. */
  readonly bossDatabase: Db
  countConnections(): ConnectionCount
  /** Runs something that only one coordinator may do at a time. Statements on the database that it receives have no time limit. */
  exclusively<T>(run: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Statements with this prefix are prepared once per connection. */
export const PREPARED = '/* prepared */'

/**
 * All our statements find rows by key. The planner relies on old table sizes and would scan a young table; a prepared plan would keep doing
 * so as the table grows.
 */
const PLANNER = 'enable_seqscan=off'

/** Compiling takes tens of milliseconds per run; our statements take one. */
const COMPILER = 'jit=off'

/** Overrides the server's setting: an acknowledged write must survive a crash of the server. */
const DURABILITY = 'synchronous_commit=on'

/** An arbitrary number, the same in every coordinator. */
const SCHEMA_LOCK = 0x636f_756e
const CONNECT_TIMEOUT_MS = 5_000
/** The silence before the system probes a connection. Its default is two hours. */
const KEEP_ALIVE_MS = 10_000
/** PostgreSQL's `read_only_sql_transaction`: the server is a standby. */
const READ_ONLY = '25006'
const STATEMENT_TIMEOUT_MS = 30_000
/** How long a schema change waits for a table in use. */
const LOCK_TIMEOUT_MS = 5_000

/** Connects to PostgreSQL and applies pending migrations. */
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

/** Connects with the first statement, and doesn't change the schema. */
export function connectPostgres(options: OpenDatabaseOptions): Database {
  const { databaseUrl, poolSize = 10, statementTimeoutMs = STATEMENT_TIMEOUT_MS, log } = options
  const pool = createPool(databaseUrl, log, {
    max: poolSize,
    statement_timeout: statementTimeoutMs,
    // A coordinator that froze in a transaction must not keep its rows locked.
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // Detects a server that disappeared without closing the connection.
    query_timeout: statementTimeoutMs + CONNECT_TIMEOUT_MS,
  })
  const db = createKysely(pool)
  return {
    db,
    bossDatabase: {
      async executeSql(text, values) {
        // The driver returns a list if the text has several statements.
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
      // No statement timeout: indexing a large table takes long, and waiting for other coordinators is normal. But a statement that waits for
      // a table lock blocks all later ones, so that wait is limited.
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
          // Closing the connection releases the lock.
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
    // The address may lead to a standby for a while. It would serve stale reads and reject every write.
    verify: (client, done) => void assertWritable(client).then(() => done(), done),
    options: [PLANNER, COMPILER, DURABILITY, ...settings].map((setting) => `-c ${setting}`).join(' '),
    ...limits,
  })
  const reportLoss = (error: Error) => {
    log?.warn({ msg: 'Lost a database connection', code: toErrorCode(error) })
  }
  // Unhandled errors would end the process: of idle connections here, and of those between two statements of a transaction below.
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

/** Kysely doesn't name statements, but the driver needs a name to prepare one. */
function createPreparingPool(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect()
      let loss: unknown
      async function query(text: string, values: unknown[]) {
        // A rollback after an unanswered statement would wait behind it.
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
 * Whether a connection is unusable after this error. The server reports a shutdown before the socket closes. After an error of ours, such as
 * a timeout, the server's answer is still to come and the next statement would wait for it.
 */
function isLoss(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true
  return error.severity === 'FATAL' || error.severity === 'PANIC' || error.code === READ_ONLY
}

/** Named by content, so that programs of different versions behind one connection pooler never use one name for different statements. */
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
