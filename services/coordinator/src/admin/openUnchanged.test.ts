import { startPostgres } from '@countersign/testing'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSchemaState } from '../store/migrate.ts'
import { connectPostgres, openDatabase } from '../store/openDatabase.ts'
import { openUnchanged } from './openUnchanged.ts'

let postgres: Awaited<ReturnType<typeof startPostgres>>
beforeAll(async () => {
  postgres = await startPostgres({ isDurable: false })
})
afterAll(() => postgres.stop())

const open = (databaseUrl: string) => openUnchanged({ databaseUrl, dataDir: '/nowhere' })
async function findState(databaseUrl: string) {
  const database = connectPostgres(databaseUrl, { poolSize: 1 })
  return findSchemaState(database.db).finally(() => database.close())
}
/** A database of this release, after one statement. */
async function createChanged(statement: string): Promise<string> {
  const databaseUrl = await postgres.createDatabase()
  const database = await openDatabase({ databaseUrl })
  await sql.raw(statement).execute(database.db)
  await database.close()
  return databaseUrl
}

test('the schema of this release is opened', async () => {
  const database = await open(await createChanged('select 1'))
  expect((await findSchemaState(database.db)).toCome).toEqual([])
  await database.close()
})

test('an empty database is refused, and stays empty', async () => {
  const databaseUrl = await postgres.createDatabase()
  await expect(open(databaseUrl)).rejects.toMatchObject({ details: expect.stringMatching(/^the database is empty;/) })
  expect((await findState(databaseUrl)).taken).toEqual([])
})

test.each([
  [
    'an older schema',
    "delete from migrations where name > '0009'",
    /^the schema is at 0008-webhooks, and this release/,
  ],
  ['a newer schema', "insert into migrations values ('9999-future', '2030')", /^the database was made by a newer/],
])('%s is refused, and no step is taken', async (_, change, reason) => {
  const databaseUrl = await createChanged(change)
  const before = await findState(databaseUrl)
  await expect(open(databaseUrl)).rejects.toMatchObject({ details: expect.stringMatching(reason) })
  expect(await findState(databaseUrl)).toEqual(before)
})

test('a database that is not there is unavailable', async () => {
  await expect(open('postgres://x:y@127.0.0.1:1/z')).rejects.toMatchObject({ code: 'database_unavailable' })
})
