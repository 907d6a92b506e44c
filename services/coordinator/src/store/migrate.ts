import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { CoordinatorError } from '../errors.ts'
import { LOCK_NOT_AVAILABLE, toErrorCode } from './databaseError.ts'
import { up as initial } from './migrations/0001-initial.ts'
import { up as pipeline } from './migrations/0002-pipeline.ts'
import { up as collateralCache } from './migrations/0003-collateral-cache.ts'
import { up as kinds } from './migrations/0004-kinds.ts'
import { up as vaults } from './migrations/0005-vaults.ts'
import { up as logs } from './migrations/0006-logs.ts'
import { up as finalProofs } from './migrations/0007-final-proofs.ts'
import { up as webhooks } from './migrations/0008-webhooks.ts'
import { up as retention } from './migrations/0009-retention.ts'
import { up as claims } from './migrations/0010-claims.ts'
import { up as plans } from './migrations/0011-plans.ts'
import { up as claimsByKey } from './migrations/0012-claims-by-key.ts'
import { up as statistics } from './migrations/0013-statistics.ts'
import { up as claimsTogether } from './migrations/0014-claims-together.ts'
import { up as gasOfADay } from './migrations/0015-gas-of-a-day.ts'

/** By name, in order. A migration that has been released is never edited: a change is a new one. */
const migrations: Readonly<Record<string, Migration>> = {
  '0001-initial': { up: initial },
  '0002-pipeline': { up: pipeline },
  '0003-collateral-cache': { up: collateralCache },
  '0004-kinds': { up: kinds },
  '0005-vaults': { up: vaults },
  '0006-logs': { up: logs },
  '0007-final-proofs': { up: finalProofs },
  '0008-webhooks': { up: webhooks },
  '0009-retention': { up: retention },
  '0010-claims': { up: claims },
  '0011-plans': { up: plans },
  '0012-claims-by-key': { up: claimsByKey },
  '0013-statistics': { up: statistics },
  '0014-claims-together': { up: claimsTogether },
  '0015-gas-of-a-day': { up: gasOfADay },
}

/** Where a schema stands, by the names of its steps: those that were taken, those that are to come, and those of a newer program. */
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

/**
 * Brings a database to this program's schema. All steps run in one transaction, under a lock where several may start at once;
 * a database that knows a step this program does not was made by a newer one, and is left alone.
 */
export async function migrate<T>(db: Kysely<T>): Promise<void> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...migrations }) },
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrations_lock',
  })
  const { error, results } = await migrator.migrateToLatest()
  if (error === undefined) return
  // Kysely stops before the first step when it finds executed ones that it does not know.
  if (results === undefined && error instanceof Error && error.message.startsWith('corrupted migrations')) {
    throw new CoordinatorError('internal', 'the database was made by a newer program', { cause: error })
  }
  if (toErrorCode(error) === LOCK_NOT_AVAILABLE) {
    throw new CoordinatorError('database_unavailable', 'a table that the schema must change is in use; start again', {
      cause: error,
    })
  }
  throw error
}
