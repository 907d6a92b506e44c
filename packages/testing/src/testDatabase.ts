import { startPostgres } from './postgres.ts'
import { connectPostgres, queryPostgres } from './postgresClient.ts'

/** Initial content of a database. `fill` runs once per server on an empty database and must close its connections. */
export type Template = { name: string; fill(url: string): Promise<void> }

export type TestDatabase = { url: string; drop(): Promise<void> }

/** URL of the server that all test files of a run share. */
const VARIABLE = 'COUNTERSIGN_TEST_POSTGRES'

/** Vitest's `globalSetup`: one PostgreSQL for all test files. Tests that stop or change a server start their own. */
export default async function startSharedPostgres(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[VARIABLE] !== undefined) return undefined
  const postgres = await startPostgres({
    isDurable: false,
    settings: { max_connections: '400', max_wal_size: '256MB' },
  })
  process.env[VARIABLE] = postgres.url
  return async () => {
    delete process.env[VARIABLE]
    await postgres.stop()
  }
}

/** Creates a database on the shared server; if there is none, on a new server that `drop` stops. */
export async function createTestDatabase(template?: Template): Promise<TestDatabase> {
  const shared = process.env[VARIABLE]
  const own = shared === undefined ? await startPostgres({ isDurable: false }) : undefined
  const server = own?.url ?? shared ?? ''
  const source = template && (await fillTemplate(server, template))
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  await queryPostgres(server, `create database ${name}${source === undefined ? '' : ` template ${source}`}`)
  return {
    url: toUrl(server, name),
    async drop() {
      if (own !== undefined) return own.stop()
      await queryPostgres(server, `drop database ${name} with (force)`)
    },
  }
}

async function fillTemplate(server: string, { name, fill }: Template): Promise<string> {
  const database = `template_${name}`
  const client = await connectPostgres(server)
  try {
    // Concurrent test files wait for the first one. The database gets its final name once it is complete.
    await client.query('select pg_advisory_lock(hashtext($1))', [database])
    const found = await client.query('select from pg_database where datname = $1', [database])
    if (found.length > 0) return database
    const draft = `${database}_draft`
    await client.query(`drop database if exists ${draft}`)
    await client.query(`create database ${draft}`)
    await fill(toUrl(server, draft))
    await client.query(`alter database ${draft} rename to ${database}`)
    return database
  } finally {
    // Closing the connection releases the lock.
    await client.end()
  }
}

function toUrl(server: string, database: string): string {
  return Object.assign(new URL(server), { pathname: `/${database}` }).href
}
