import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { CoordinatorError } from '../errors.ts'
import { createSchema } from './createSchema.ts'
import { LOCK_NOT_AVAILABLE, toErrorCode } from './databaseError.ts'

/**
 * Migrations by name, in order. Until 0.2.0 the first one is edited in place and gets a later date as its name, so databases with an older
 * schema are refused. After that a migration never changes: every change is a new one.
 */
const migrations: Readonly<Record<string, Migration>> = {
  '2026-11-20-anchors': { up: createSchema },
}

/** The migrations of a database by name: applied, pending, and unknown to this program. */
export type SchemaState = { taken: readonly string[]; toCome: readonly string[]; foreign: readonly string[] }

/** Only reads. */
export async function findSchemaState<T>(db: Kysely<T>): Promise<SchemaState> {
  const known = Object.keys(migrations)
  const found = await sql<{ found: boolean }>`select to_regclass('migrations') is not null as found`.execute(db)
  const isThere = found.rows[0]?.found === true
  const { rows } = isThere
    ? await sql<{ name: string }>`select name from migrations order by name`.execute(db)
    : { rows: [] }
  const taken = rows.map(({ name }) => name)
  return {
    taken,
    toCome: known.filter((name) => !taken.includes(name)),
    foreign: taken.filter((name) => !known.includes(name)),
  }
}

/** Explains why this program can't use a schema with unknown migrations, and what to do. Undefined if there are none. */
export function describeForeign({
  foreign,
}: Pick<SchemaState, 'foreign'>): { problem: string; fix: string } | undefined {
  const last = foreign.at(-1)
  if (last === undefined) return undefined
  const isNewer = last > (Object.keys(migrations).at(-1) ?? '')
  return {
    problem: `the schema is at ${last}, of ${isNewer ? 'a newer' : 'an earlier, unsupported'} release`,
    fix: isNewer
      ? 'Use that release or a later one.'
      : 'Use an empty database. For the local stack, npm run dev -- --reset creates one.',
  }
}

/** Applies pending migrations in one transaction. Leaves a database with unknown migrations unchanged. */
export async function migrate<T>(db: Kysely<T>): Promise<void> {
  try {
    const foreign = describeForeign(await findSchemaState(db))
    if (foreign !== undefined) throw new CoordinatorError('internal', `${foreign.problem}. ${foreign.fix}`)
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => ({ ...migrations }) },
      migrationTableName: 'migrations',
      migrationLockTableName: 'migrations_lock',
    })
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
  } catch (error) {
    if (toErrorCode(error) !== LOCK_NOT_AVAILABLE) throw error
    throw new CoordinatorError('database_unavailable', 'a table that the schema must change is in use; start again', {
      cause: error,
    })
  }
}
