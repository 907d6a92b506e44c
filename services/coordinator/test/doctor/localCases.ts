import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type Bed, type Case, PIN_TOKEN, serveSilence, serveTls, writeJson } from './bed.ts'

const withPassword = (url: string, password: string) => Object.assign(new URL(url), { password }).href
const withPath = (url: string, pathname: string) => Object.assign(new URL(url), { pathname }).href

/** A database with only these migrations. */
async function createSchema(bed: Bed, names: readonly string[]): Promise<string> {
  const name = `schema_${Math.random().toString(16).slice(2)}`
  const admin = new pg.Client({ connectionString: bed.backend.databaseUrl })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = withPath(bed.backend.databaseUrl, `/${name}`)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table migrations (name text primary key, timestamp text)')
  for (const each of names) await client.query('insert into migrations values ($1, $2)', [each, '2026'])
  await client.end()
  return url
}

/** A database that reports that it is a standby. */
async function createStandby(bed: Bed): Promise<string> {
  const url = await createSchema(bed, [])
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create schema standby')
  await client.query('create function standby.pg_is_in_recovery() returns boolean language sql return true')
  await client.query(`alter database ${new URL(url).pathname.slice(1)} set search_path = standby, pg_catalog, public`)
  await client.end()
  return url
}

const days = (count: number) => new Date(Date.now() + count * 86_400_000)

/** Faults of settings, machine, database and web. */
export const localCases: readonly Case[] = [
  ['configuration', /^DATABASE_URI: unknown/, () => ({ DATABASE_URI: 'postgres://x' })],
  ['configuration', /^ALLOWED_ORIGINS: expected at least one/, () => ({ ALLOWED_ORIGINS: '' })],
  [
    'configuration',
    /^MOCK_ATTESTATION: rejected in production/,
    () => ({ NODE_ENV: 'production' }),
    { args: ['--only', 'configuration'] },
  ],
  [
    'configuration',
    /^NODE_OPTIONS: rejected on real hardware/,
    () => ({ MOCK_ATTESTATION: undefined, NODE_OPTIONS: '--import=x' }),
    { args: ['--only', 'configuration'] },
  ],
  ['configuration', /^COOKIE_SAMESITE: none requires an https/, () => ({ COOKIE_SAMESITE: 'none' })],
  ['configuration', /^ENCLAVE_POLICY_FILE: cannot be read/, () => ({ ENCLAVE_POLICY_FILE: '/nowhere/policy.json' })],
  [
    'configuration',
    /^DATABASE_URL_FILE: cannot be read/,
    () => ({ DATABASE_URL: undefined, DATABASE_URL_FILE: '/nowhere/database-url' }),
  ],
  ['configuration', /^PUBLISHER_PRIVATE_KEY: expected/, () => ({ PUBLISHER_PRIVATE_KEY: 'canary-key' })],
  ['configuration', /^RPC_URL: required/, () => ({ RPC_URL: undefined })],
  [
    'publishing',
    /publishes nothing/,
    () => ({ RPC_URL: undefined, PUBLISHER_PRIVATE_KEY: undefined }),
    { state: 'warning' },
  ],
  [
    'configuration',
    /^DATABASE_URL: expected a PostgreSQL URL/,
    () => ({ DATABASE_URL: undefined }),
    { args: ['--worker'] },
  ],
  [
    'secrets',
    /every user/,
    async (_, bed) => {
      const path = join(bed.folder, 'token')
      await writeFile(path, PIN_TOKEN)
      await chmod(path, 0o644)
      return { IPFS_API_TOKEN: undefined, IPFS_API_TOKEN_FILE: path }
    },
    { state: 'warning' },
  ],
  [
    'data-directory',
    /is a file/,
    () => ({
      IPFS_PINNER: 'helia',
      IPFS_API_URL: undefined,
      IPFS_API_TOKEN: undefined,
      DATA_DIR: '/etc/hostname/x',
    }),
  ],
  [
    'database',
    /wrong password/,
    (_, bed) => ({ DATABASE_URL: withPassword(bed.backend.databaseUrl, 'canary-password') }),
  ],
  ['database', /no such database/, (_, bed) => ({ DATABASE_URL: withPath(bed.backend.databaseUrl, '/nothing') })],
  [
    'database',
    /connection refused/,
    (_, bed) => ({ DATABASE_URL: `postgres://countersign:canary-password@${bed.closedAddress}/countersign` }),
  ],
  ['database', /is a standby/, async (_, bed) => ({ DATABASE_URL: await createStandby(bed) })],
  [
    'database',
    /no answer in 1 s/,
    async (scope) => ({ DATABASE_URL: `postgres://x:canary-password@${await serveSilence(scope)}/x` }),
    { args: ['--timeout', '1'] },
  ],
  ['database', /does not use TLS/, (_, bed) => ({ DATABASE_URL: `${bed.backend.databaseUrl}?sslmode=verify-full` })],
  ['database', /not a PostgreSQL address/, () => ({ DATABASE_URL: 'mysql://x:canary-password@127.0.0.1/x' })],
  [
    'schema',
    /is at 0002-pipeline, of an earlier/,
    async (_, bed) => ({ DATABASE_URL: await createSchema(bed, ['0001-initial', '0002-pipeline']) }),
  ],
  [
    'schema',
    /9999-future/,
    async (_, bed) => ({ DATABASE_URL: await createSchema(bed, ['2026-11-19-initial', '9999-future']) }),
  ],
  [
    'policy',
    /placeholder/,
    async (_, bed) => {
      const measurement = { mrTd: 'ab'.repeat(48) }
      const path = await writeJson(bed, 'placeholder.json', {
        measurements: [measurement],
        configHashes: ['00'.repeat(32)],
      })
      return { ENCLAVE_POLICY_FILE: path }
    },
  ],
  [
    'configuration',
    /^LOG_WITNESSES: expected VERIFIER-KEY@URL/,
    (_, bed) => ({
      RECEIPTS: '2',
      LOG_WITNESSES: `witness.example/w1+7a6d8c1e+BJoYAVZ9ClHLQnDjlTdcH3xN1bZ0h1uF0H1g@http://${bed.closedAddress}`,
    }),
    { args: ['--only', 'configuration'] },
  ],
  [
    'tls',
    /expired on 2021-01-01/,
    async (scope) => ({
      PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: new Date('2021-01-01') }),
    }),
  ],
  [
    'tls',
    /another name/,
    async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'other.example', notAfter: days(90) }) }),
  ],
  [
    'tls',
    /browsers don’t trust/,
    async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: days(90) }) }),
    { state: 'warning' },
  ],
  [
    'proxies',
    /share the rate limits/,
    async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: days(90) }) }),
    { state: 'warning' },
  ],
  ['tls', /connection refused/, () => ({ PUBLIC_URL: 'https://localhost:1' }), { state: 'warning' }],
  ['cookies', /users don’t stay signed in/, () => ({ ALLOWED_ORIGINS: 'https://app.example.com' })],
  ['origins', /plain http/, () => ({ ALLOWED_ORIGINS: 'http://app.example.com' })],
  ['proxies', /not an address or CIDR range/, () => ({ TRUSTED_PROXIES: '10.0.0.0/99' })],
  ['proxies', /nearly anyone/, () => ({ TRUSTED_PROXIES: '0.0.0.0/0' })],
]
