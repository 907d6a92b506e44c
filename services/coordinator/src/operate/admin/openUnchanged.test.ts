import { createTestDatabase } from '@countersign/testing'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { findSchemaState } from '../../store/migrate.ts'
import { connectPostgres, openDatabase } from '../../store/openDatabase.ts'
import { openUnchanged } from './openUnchanged.ts'

async function createDatabase(): Promise<string> {
  const { url, drop } = await createTestDatabase()
  onTestFinished(drop)
  return url
}

async function findState(databaseUrl: string) {
  const database = connectPostgres({ databaseUrl, poolSize: 1 })
  return findSchemaState(database.db).finally(() => database.close())
}
/** Creates a database of this release and runs a statement. */
async function createChanged(statement: string): Promise<string> {
  const databaseUrl = await createDatabase()
  const database = await openDatabase({ databaseUrl })
  await sql.raw(statement).execute(database.db)
  await database.close()
  return databaseUrl
}

test('opens a database with the schema of this release', async () => {
  const database = await openUnchanged(await createChanged('select 1'))
  expect((await findSchemaState(database.db)).toCome).toEqual([])
  await database.close()
})

test('rejects an empty database without changing it', async () => {
  const databaseUrl = await createDatabase()
  await expect(openUnchanged(databaseUrl)).rejects.toMatchObject({
    details: expect.stringMatching(/^the database is empty;/),
  })
  expect((await findState(databaseUrl)).taken).toEqual([])
})

test.each([
  [
    'an older schema',
    "update migrations set name = '0015-gas-of-a-day'",
    /^the schema is at 0015.*earlier, unsupported/,
  ],
  [
    'a newer schema',
    "insert into migrations values ('9999-future', '2030')",
    /^the schema is at 9999-future, of a newer/,
  ],
])('rejects %s without migrating', async (_, change, reason) => {
  const databaseUrl = await createChanged(change)
  const before = await findState(databaseUrl)
  await expect(openUnchanged(databaseUrl)).rejects.toMatchObject({ details: expect.stringMatching(reason) })
  expect(await findState(databaseUrl)).toEqual(before)
})

test('reports an unreachable database as unavailable', async () => {
  await expect(openUnchanged('postgres://x:y@127.0.0.1:1/z')).rejects.toMatchObject({ code: 'database_unavailable' })
})
