import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { removePostgres, startPostgres, type TestPostgres } from '@countersign/testing'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestClaim, createTestLog } from '../../test/store/logs.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestUser,
  createTestWallet,
  NOW,
  openStore,
  randomHex,
} from '../../test/store/store.ts'
import { guard } from './databaseError.ts'
import { createLogStore } from './logs.ts'
import { openDatabase } from './openDatabase.ts'
import { upsertUser } from './users.ts'

const UNAVAILABLE = { code: 'database_unavailable' }

// A separate server, which tests kill and turn into a standby.
let folder = ''
let postgres: TestPostgres
beforeAll(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'open-store-')), 'postgres')
  // Some operators set this for speed: a commit is then acknowledged before it is on disk.
  postgres = await startPostgres({ folder, settings: { synchronous_commit: 'off' } })
})
afterAll(async () => {
  await postgres.stop()
  await removePostgres(folder)
  await rm(dirname(folder), { recursive: true })
})

describe('openStore on PostgreSQL', () => {
  test('counts connections: in use, idle, waiting', async () => {
    const databaseUrl = await postgres.createDatabase()
    const database = await openDatabase({ databaseUrl, poolSize: 2 })
    const holder = new pg.Client({ connectionString: databaseUrl })
    await holder.connect()
    await holder.query('select pg_advisory_lock(1)')
    const held = Array.from({ length: 3 }, () => sql`select pg_advisory_xact_lock(1)`.execute(database.db))
    await expect.poll(database.countConnections).toEqual({ used: 2, idle: 0, waiting: 1, limit: 2 })
    await holder.end()
    await Promise.all(held)
    expect(database.countConnections()).toEqual({ used: 0, idle: 2, waiting: 0, limit: 2 })
    await database.close()
  })

  test('six coordinators may start at once on an empty database and on a filled one', async () => {
    const databaseUrl = await postgres.createDatabase()
    for (let round = 0; round < 2; round++) {
      const stores = await Promise.all(Array.from({ length: 6 }, () => openStore({ databaseUrl, poolSize: 3 })))
      await Promise.all(stores.map(createTestWallet))
      await Promise.all(stores.map((store) => store.close()))
    }
    const database = await openDatabase({ databaseUrl })
    const { rows } = await sql<{ name: string }>`select name from migrations`.execute(database.db)
    expect(rows).toHaveLength(1)
    await database.close()
  })

  test('a schema change may take longer than other statements, and so may waiting for it', async () => {
    // The driver allows five more seconds for the network.
    const options = { databaseUrl: await postgres.createDatabase(), statementTimeoutMs: 1 }
    const database = await openDatabase(options)
    const { promise: held, resolve } = Promise.withResolvers<void>()
    const long = database.exclusively(async (db) => {
      resolve()
      await sql`select pg_sleep(5.5)`.execute(db)
    })
    await held
    const other = await openDatabase(options)
    await long
    await Promise.all([database.close(), other.close()])
  })

  test('a schema change fails with its reason if a table stays locked, because waiting would block later statements', async () => {
    const databaseUrl = await postgres.createDatabase()
    const database = await openDatabase({ databaseUrl })
    await database.db.transaction().execute(async (transaction) => {
      await sql`lock table migrations in access exclusive mode`.execute(transaction)
      await expect(openDatabase({ databaseUrl })).rejects.toMatchObject({
        code: 'database_unavailable',
        message: 'a table that the schema must change is in use; start again',
      })
    })
    await openDatabase({ databaseUrl }).then((again) => again.close())
    await database.close()
  })

  test.each([
    ['a newer release', '9999-future', /newer release.* Use that release/],
    ['a release before this initial migration', '0001-initial', /earlier, unsupported.*npm run dev -- --reset/],
  ])('rejects a database of %s without changing it, and names the fix', async (_, name, message) => {
    const databaseUrl = await postgres.createDatabase()
    const database = await openDatabase({ databaseUrl })
    await sql`update migrations set name = ${name}`.execute(database.db)
    const error = await openStore({ databaseUrl }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'internal', message: expect.stringMatching(message) })
    const { rows } = await sql<{ name: string }>`select name from migrations`.execute(database.db)
    expect(rows).toEqual([{ name }])
    await database.close()
  })

  test('a signing survives a crash of the server; meanwhile the database is unavailable, then recovers', async () => {
    const store = await openStore({ databaseUrl: await postgres.createDatabase() })
    const wallet = await createTestWallet(store)
    const signing = createTestSigning(wallet)
    const parameters = { batch: createTestBatch(), signings: [signing], now: NOW }
    const signed = await store.insertSignings(parameters)
    await postgres.kill()
    await expect(store.ping()).rejects.toMatchObject(UNAVAILABLE)
    await expect(store.insertSignings(parameters)).rejects.toMatchObject(UNAVAILABLE)
    await postgres.restart()
    expect(await store.findProof(signing.slug)).toBeDefined()
    expect(await store.insertSignings(parameters)).toEqual(signed)
    await store.close()
  })

  test('claims survive a crash of the server, although their table does not', async () => {
    const database = await openDatabase({ databaseUrl: await postgres.createDatabase() })
    const logStore = createLogStore(database)
    const claims = [createTestClaim(randomUUID()), createTestClaim(randomUUID())]
    expect(await logStore.appendLog(createTestLog().toAppend({ claims }))).toEqual({ lost: [] })
    await postgres.kill()
    await postgres.restart()
    const left = sql`select 1 from claims`.execute(database.db)
    expect((await left.catch(() => sql`select 1 from claims`.execute(database.db))).rows).toEqual([])
    const late = claims.map((claim) => ({ ...claim, leaf: randomHex(32) }))
    const lost = late.map(({ leaf }) => leaf)
    expect(await logStore.appendLog(createTestLog().toAppend({ claims: late }))).toEqual({ lost })
    await database.close()
  })

  test('a commit is acknowledged only after it is on disk, regardless of the server’s setting', async () => {
    const database = await openDatabase({ databaseUrl: await postgres.createDatabase() })
    const { rows } = await sql`show synchronous_commit`.execute(database.db)
    expect(rows).toEqual([{ synchronous_commit: 'on' }])
    await database.close()
  })

  test('a read-only server is unavailable, and its connections are not reused', async () => {
    const databaseUrl = await postgres.createDatabase()
    const name = sql.id(new URL(databaseUrl).pathname.slice(1))
    const admin = await openDatabase({ databaseUrl })
    await sql`alter database ${name} set default_transaction_read_only = on`.execute(admin.db)
    const database = await openDatabase({ databaseUrl, poolSize: 2 })
    const write = guard(() => upsertUser(database.db, createTestUser()))
    await expect(write()).rejects.toMatchObject(UNAVAILABLE)
    await sql`alter database ${name} reset default_transaction_read_only`.execute(admin.db)
    await write()
    await Promise.all([database.close(), admin.close()])
  })

  test('a closed store returns database_unavailable', async () => {
    const store = await openStore({ databaseUrl: await postgres.createDatabase() })
    await store.close()
    await store.close()
    await expect(store.ping()).rejects.toMatchObject(UNAVAILABLE)
  })

  describe('a wrong DATABASE_URL returns database_unavailable quickly and without the password', () => {
    const change = (edit: (url: URL) => void) => {
      const url = new URL(postgres.url)
      edit(url)
      return url.href
    }
    const cases: [string, () => string][] = [
      ['password', () => change((url) => Object.assign(url, { password: 'wrong-password' }))],
      ['user', () => change((url) => Object.assign(url, { username: 'nobody', password: 'wrong-password' }))],
      ['database', () => change((url) => Object.assign(url, { pathname: '/nothing' }))],
      ['host', () => 'postgres://user:wrong-password@database.invalid/countersign'],
    ]
    test.each(cases)('%s', async (_, toUrl) => {
      const start = performance.now()
      const error = await openStore({ databaseUrl: toUrl() }).catch((reason: Error) => reason)
      expect(error).toMatchObject(UNAVAILABLE)
      expect(String(error)).not.toContain('wrong-password')
      expect(performance.now() - start).toBeLessThan(10_000)
    })

    test('the port', async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const address = server.address()
      await new Promise((resolve) => server.close(resolve))
      const port = typeof address === 'object' ? address?.port : undefined
      await expect(openStore({ databaseUrl: `postgres://a:b@127.0.0.1:${port}/c` })).rejects.toMatchObject(UNAVAILABLE)
    })
  })
})

describe('openStore on a server that fails over', () => {
  test('a standby is unavailable, even for reads, until it is promoted', async () => {
    const store = await openStore({ databaseUrl: await postgres.createDatabase() })
    await postgres.kill()
    await writeFile(join(folder, 'data/standby.signal'), '', { mode: 0o666 })
    await postgres.restart()
    await expect(store.ping()).rejects.toMatchObject(UNAVAILABLE)
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    await client.query('select pg_promote()')
    await client.end()
    await store.ping()
    await store.close()
  })

  test('a transaction on a frozen server ends once, and its connection is not reused', async () => {
    const databaseUrl = await postgres.createDatabase()
    // Five more seconds for the network.
    const database = await openDatabase({ databaseUrl, poolSize: 2, statementTimeoutMs: 2_000 })
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database.db)
    const pid = rows[0]?.pid ?? Number.NaN
    process.kill(pid, 'SIGSTOP')
    const work = database.db.transaction().execute((transaction) => sql`select 1`.execute(transaction))
    await expect(work).rejects.toThrow('Query read timeout')
    await sql`select 1`.execute(database.db)
    process.kill(pid, 'SIGCONT')
    await database.close()
  })
})
