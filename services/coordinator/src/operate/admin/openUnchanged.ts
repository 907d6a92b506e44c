import { CoordinatorError } from '../../errors.ts'
import { toDatabaseError } from '../../store/databaseError.ts'
import { describeForeign, findSchemaState } from '../../store/migrate.ts'
import { connectPostgres, type Database } from '../../store/openDatabase.ts'

/** Opens a database only if it has this release's schema. It never migrates: a coordinator does that when it starts, after a backup. */
export async function openUnchanged(databaseUrl: string): Promise<Database> {
  const database = connectPostgres({ databaseUrl })
  try {
    const state = await findSchemaState(database.db)
    const foreign = describeForeign(state)
    if (foreign !== undefined) throw refuse(`${foreign.problem}. ${foreign.fix}`)
    const { taken, toCome } = state
    if (taken.length === 0) throw refuse('the database is empty; start a coordinator, which creates the schema')
    if (toCome.length > 0) {
      throw refuse(
        `the schema is at ${taken.at(-1)}, but this release needs ${toCome.at(-1)}; back up the database and start a coordinator of this release, or use the older release's admin`,
      )
    }
    return database
  } catch (error) {
    await database.close().catch(() => {})
    throw toDatabaseError(error)
  }
}

function refuse(details: string): CoordinatorError {
  return new CoordinatorError('internal', 'the database cannot be used', { details })
}
