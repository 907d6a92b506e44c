import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { CoordinatorError } from '../errors.ts'
import { createSchema } from './createSchema.ts'
import { LOCK_NOT_AVAILABLE, toErrorCode } from './databaseError.ts'

/**
 * By name, in order. Until 0.2.0 the first is edited in place, and gets a later date as its name: then databases with an earlier schema are
 * refused. From then on a migration is never edited: a change is a new one.
 */
const migrations: Readonly<Record<string, Migration>> = {
  '2026-11-19-partitions': { up: createSchema },
}

/** Where a schema is, by the names of its migrations: those that ran, those that are to run, and those that this program does not know. */
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

/** Why this program cannot use a schema with foreign migrations, and what to do. Undefined where there are none. */
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

/** Brings a database to this program's schema, in one transaction. One with foreign migrations is left alone. */
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
