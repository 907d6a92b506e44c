import { isLoopbackHost } from '@countersign/protocol'
import { sql } from 'kysely'
import { type CollateralCache, createCollateralCache } from '../../store/collateralCache.ts'
import { toErrorCode } from '../../store/databaseError.ts'
import { describeForeign, findSchemaState, type SchemaState } from '../../store/migrate.ts'
import { connectPostgres, type Database } from '../../store/openDatabase.ts'
import { type Check, type Context, type Finding, fault, ok, warning } from './check.ts'
import { describeError, explain, findCode } from './reasons.ts'

/** Reads that other checks need, if the database is available. */
export type DatabaseView = {
  /** Read-only. */
  collateralCache: CollateralCache
  /** Returns the CID of a pinned receipt, or undefined. */
  findPinnedCid(): Promise<string | undefined>
  /** The origins of all logs. */
  listOrigins(): Promise<readonly string[]>
}

const SETTINGS = /^DATABASE_URL(_FILE)?$/

/** Only reads. It runs no migration. */
export function createDatabaseChecks(context: Context): { checks: Check[]; view: DatabaseView } {
  const { subject, clock, times } = context
  const { databaseUrl } = subject
  let opened: Database | undefined

  function open(url: string): Database {
    if (opened !== undefined) return opened
    const database = connectPostgres({ databaseUrl: url, poolSize: 2 })
    opened = database
    context.onEnd(() => database.close())
    return database
  }

  async function checkDatabase(): Promise<Finding> {
    const where = toPlace(databaseUrl)
    if (where === undefined) {
      return fault(
        'DATABASE_URL is not a PostgreSQL address',
        'Write it as postgres://USER:PASSWORD@HOST:5432/DATABASE.',
      )
    }
    try {
      const { db } = open(databaseUrl)
      // Connects first, so that the connection's time doesn't count as a clock difference.
      await sql`select 1`.execute(db)
      const from = clock.now()
      const { rows } = await sql<{ at: string; version: string }>`
        select (extract(epoch from clock_timestamp()) * 1000)::text as at,
          current_setting('server_version') as version`.execute(db)
      const { at = '', version = '' } = rows[0] ?? {}
      times.note({ source: 'the database', at: Number(at), from, until: clock.now(), precisionMs: 1 })
      return ok(`PostgreSQL ${version.split(' ')[0]} at ${where}`)
    } catch (error) {
      return describeRefusal(error, where)
    }
  }

  async function checkTls(): Promise<Finding> {
    const url = new URL(databaseUrl)
    const { rows } = await sql<{ ssl: boolean }>`
      select coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as ssl`.execute(
      open(databaseUrl).db,
    )
    const mode = url.searchParams.get('sslmode') ?? ''
    const fix = 'Add ?sslmode=verify-full to DATABASE_URL, and &sslrootcert=FILE for your own authority.'
    if (rows[0]?.ssl !== true) {
      if (isLocal(url)) return ok('not encrypted, but local')
      return warning('the connection to the database is not encrypted', `${fix} Within one guest, ignore this.`)
    }
    const isOpen = mode === 'no-verify' || url.searchParams.get('uselibpqcompat') === 'true'
    if (isOpen && mode !== 'verify-full') return warning('encrypted, but the server’s identity is not verified', fix)
    return ok('encrypted')
  }

  async function checkSchema(): Promise<Finding> {
    try {
      return evaluateSchema(await findSchemaState(open(databaseUrl).db))
    } catch (error) {
      if (toErrorCode(error) !== '42501') throw error
      return fault('the user of DATABASE_URL may not read the tables', 'Make that user the owner of the database.')
    }
  }

  return {
    checks: [
      { name: 'database', settings: SETTINGS, run: checkDatabase },
      { name: 'database-tls', settings: SETTINGS, needs: ['database'], run: checkTls },
      { name: 'schema', settings: SETTINGS, needs: ['database'], run: checkSchema },
    ],
    view: {
      collateralCache: {
        load: async (platform) => (opened === undefined ? undefined : createCollateralCache(opened.db).load(platform)),
        async save() {},
      },
      async findPinnedCid() {
        const row = await opened?.db
          .selectFrom('proofs')
          .where('ipfs_cid', 'is not', null)
          .where('pinned_at', 'is not', null)
          .orderBy('signing_id', 'desc')
          .select('ipfs_cid')
          .limit(1)
          .executeTakeFirst()
          .catch(() => undefined)
        return row?.ipfs_cid ?? undefined
      },
      async listOrigins() {
        const rows = await opened?.db
          .selectFrom('logs')
          .select('origin')
          .execute()
          .catch(() => [])
        return rows?.map(({ origin }) => origin) ?? []
      },
    },
  }
}

export function evaluateSchema({ taken, toCome, foreign }: SchemaState): Finding {
  const unknown = describeForeign({ foreign })
  if (unknown !== undefined) return fault(unknown.problem, unknown.fix)
  if (taken.length === 0) return ok('empty; the first start creates the schema')
  if (toCome.length > 0) {
    return warning(
      `the schema is at ${taken.at(-1)}, but this release needs ${toCome.at(-1)}`,
      'Back up the database, then start this release: it migrates the schema.',
    )
  }
  return ok(`${taken.at(-1)}, up to date`)
}

function describeRefusal(error: unknown, where: string): Finding {
  const code = toErrorCode(error) || findCode(error)
  const known = REFUSALS[code ?? '']
  if (known !== undefined) return fault(`${where}: ${known[0]}`, known[1])
  const reached = explain(code)
  if (reached !== undefined) return fault(`${where}: ${reached.text}`, `${reached.fix}, in DATABASE_URL.`)
  const message = error instanceof Error ? error.message : ''
  if (/does not support SSL/.test(message)) {
    return fault(
      `${where}: the server does not use TLS`,
      'Turn on ssl at the server. Within one guest you can remove sslmode.',
    )
  }
  if (/timeout/i.test(message))
    return fault(`${where}: no answer`, 'Check the address in DATABASE_URL, the network and the firewall.')
  return fault(
    `${where}: ${describeError(error)}`,
    'Read the server’s log. Appendix A of PostgreSQL’s manual lists the codes.',
  )
}

/** PostgreSQL, appendix A. */
const REFUSALS: Readonly<Record<string, readonly [text: string, fix: string]>> = {
  '25006': [
    'it is a standby, which accepts no writes (25006)',
    'Set DATABASE_URL to the primary, or promote this server.',
  ],
  '28P01': ['wrong password (28P01)', 'Correct the user and password in DATABASE_URL or its file.'],
  '28000': ['this user may not connect (28000)', 'Correct the user in DATABASE_URL, or allow it in pg_hba.conf.'],
  '3D000': ['no such database (3D000)', 'Create it, or correct the name at the end of DATABASE_URL.'],
  '53300': ['too many connections (53300)', 'Raise max_connections, or run fewer coordinators and workers.'],
  '57P03': ['it is starting or stopping (57P03)', 'Wait, then run the doctor again.'],
}

/** Host, port and database, without user and password. Undefined if it isn't a PostgreSQL URL. */
function toPlace(databaseUrl: string): string | undefined {
  const url = URL.parse(databaseUrl)
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) return undefined
  return `${url.hostname || 'the local socket'}${url.port === '' ? '' : `:${url.port}`}${url.pathname}`
}

function isLocal({ hostname }: URL): boolean {
  return hostname === '' || isLoopbackHost(hostname)
}
