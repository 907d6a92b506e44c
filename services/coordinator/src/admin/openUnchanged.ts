import { resolve } from 'node:path'
import { CoordinatorError } from '../errors.ts'
import { toDatabaseError } from '../store/databaseError.ts'
import { findSchemaState } from '../store/migrate.ts'
import { connectPostgres, type Database, hasEmbedded, openDatabase } from '../store/openDatabase.ts'

/**
 * Opens a database whose schema is that of this program. Another one is refused and left alone: a migration is for the start of a
 * coordinator, after a backup. Only the embedded one, which no other process uses meanwhile, is brought up to date. None is made: an
 * empty one in a folder that was misspelt would seem to be in order.
 */
export async function openUnchanged({
  databaseUrl,
  dataDir,
}: {
  databaseUrl: string | undefined
  dataDir: string
}): Promise<Database> {
  if (!databaseUrl) {
    if (await hasEmbedded(dataDir)) return openDatabase({ dataDir })
    throw refuse(`there is no database in ${resolve(dataDir)}; name its folder in DATA_DIR, or set DATABASE_URL`)
  }
  const database = connectPostgres(databaseUrl, {})
  try {
    const { taken, toCome, foreign } = await findSchemaState(database.db)
    if (foreign.length > 0) throw refuse('the database was made by a newer program; use the admin of that release')
    if (taken.length === 0) throw refuse('the database is empty; start a coordinator, which makes the schema')
    if (toCome.length > 0) {
      throw refuse(
        `the schema is at ${taken.at(-1)}, and this release wants ${toCome.at(-1)}; make a backup and start a coordinator of this release, or use the admin of the older one`,
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
