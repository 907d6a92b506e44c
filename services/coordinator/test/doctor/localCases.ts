import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type Bed, type Case, PIN_TOKEN, serveSilence, serveTls, writeJson } from './bed.ts'

const withPassword = (url: string, password: string) => Object.assign(new URL(url), { password }).href
const withPath = (url: string, pathname: string) => Object.assign(new URL(url), { pathname }).href

/** A database whose schema has these steps, and nothing else. */
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

/** A database that says of itself what a standby says. */
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

/** Of the settings, of this machine, of the database and of what browsers meet. */
export const localCases: readonly Case[] = [
  {
    what: 'a misspelt setting',
    break: () => ({ DATABASE_URI: 'postgres://x' }),
    name: 'configuration',
    text: /^DATABASE_URI: unknown/,
    mend: /Rename it to DATABASE_URL/,
  },
  {
    what: 'no page may call',
    break: () => ({ ALLOWED_ORIGINS: '' }),
    name: 'configuration',
    text: /^ALLOWED_ORIGINS: at least one/,
    mend: /Set ALLOWED_ORIGINS/,
  },
  {
    what: 'simulated silicon in production',
    break: () => ({ NODE_ENV: 'production' }),
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^MOCK_ATTESTATION: refused in production/,
    mend: /what production needs/,
  },
  {
    what: 'a variable that changes which code runs',
    break: () => ({ MOCK_ATTESTATION: undefined, NODE_OPTIONS: '--import=x' }),
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^NODE_OPTIONS: refused on real hardware/,
    mend: /Remove NODE_OPTIONS/,
  },
  {
    what: 'a cookie that browsers refuse',
    break: () => ({ COOKIE_SAMESITE: 'none' }),
    name: 'configuration',
    text: /^COOKIE_SAMESITE: none needs an https/,
    mend: /Set COOKIE_SAMESITE/,
  },
  {
    what: 'a policy that is not there',
    break: () => ({ ENCLAVE_POLICY_FILE: '/nowhere/policy.json' }),
    name: 'configuration',
    text: /^ENCLAVE_POLICY_FILE: cannot be read/,
    mend: /Write the policy/,
  },
  {
    what: 'a secret’s file that is not there',
    break: () => ({ DATABASE_URL: undefined, DATABASE_URL_FILE: '/nowhere/database-url' }),
    name: 'configuration',
    text: /^DATABASE_URL_FILE: cannot be read/,
    mend: /where user \d+ can read it/,
  },
  {
    what: 'a publisher’s key that is none',
    break: () => ({ PUBLISHER_PRIVATE_KEY: 'canary-key' }),
    name: 'configuration',
    text: /^PUBLISHER_PRIVATE_KEY: expected/,
    mend: /Set PUBLISHER_PRIVATE_KEY/,
  },
  {
    what: 'a key without a chain',
    break: () => ({ RPC_URL: undefined }),
    name: 'configuration',
    text: /^RPC_URL: missing/,
    mend: /Set RPC_URL/,
  },
  {
    what: 'nobody publishes',
    break: () => ({ RPC_URL: undefined, PUBLISHER_PRIVATE_KEY: undefined }),
    name: 'publishing',
    state: 'warning',
    text: /publishes nothing/,
    mend: /Set RPC_URL/,
  },
  {
    what: 'a worker without a database',
    break: () => ({ DATABASE_URL: undefined }),
    args: ['--worker'],
    name: 'configuration',
    text: /^DATABASE_URL: missing/,
    mend: /Set DATABASE_URL/,
  },
  {
    what: 'a secret that everybody on the machine can read',
    async break(_, bed) {
      const path = join(bed.folder, 'token')
      await writeFile(path, PIN_TOKEN)
      await chmod(path, 0o644)
      return { IPFS_API_TOKEN: undefined, IPFS_API_TOKEN_FILE: path }
    },
    name: 'secrets',
    state: 'warning',
    text: /every user/,
    mend: /mode 0400/,
  },
  {
    what: 'a data directory that is a file',
    break: () => ({
      IPFS_PINNER: 'helia',
      IPFS_API_URL: undefined,
      IPFS_API_TOKEN: undefined,
      DATA_DIR: '/etc/hostname/x',
    }),
    name: 'data-directory',
    text: /is a file/,
    mend: /Name a folder/,
  },
  {
    what: 'a wrong password',
    break: (_, bed) => ({ DATABASE_URL: withPassword(bed.backend.databaseUrl, 'canary-password') }),
    name: 'database',
    text: /password is wrong/,
    mend: /Correct user and password/,
  },
  {
    what: 'no such database',
    break: (_, bed) => ({ DATABASE_URL: withPath(bed.backend.databaseUrl, '/nothing') }),
    name: 'database',
    text: /no such database/,
    mend: /Create it/,
  },
  {
    what: 'no database there',
    break: (_, bed) => ({ DATABASE_URL: `postgres://countersign:canary-password@${bed.nobody}/countersign` }),
    name: 'database',
    text: /nothing listens/,
    mend: /DATABASE_URL/,
  },
  {
    what: 'a standby',
    break: async (_, bed) => ({ DATABASE_URL: await createStandby(bed) }),
    name: 'database',
    text: /is a standby/,
    mend: /Name the primary/,
  },
  {
    what: 'a database that says nothing',
    break: async (scope) => ({ DATABASE_URL: `postgres://x:canary-password@${await serveSilence(scope)}/x` }),
    args: ['--timeout', '1'],
    name: 'database',
    text: /no answer in 1 s/,
    mend: /hangs/,
  },
  {
    what: 'a database without TLS',
    break: (_, bed) => ({ DATABASE_URL: `${bed.backend.databaseUrl}?sslmode=verify-full` }),
    name: 'database',
    text: /does not speak TLS/,
    mend: /Turn on ssl/,
  },
  {
    what: 'no address of a database',
    break: () => ({ DATABASE_URL: 'mysql://x:canary-password@127.0.0.1/x' }),
    name: 'database',
    text: /no address of PostgreSQL/,
    mend: /postgres:\/\//,
  },
  {
    what: 'an older schema',
    break: async (_, bed) => ({ DATABASE_URL: await createSchema(bed, ['0001-initial', '0002-pipeline']) }),
    name: 'schema',
    text: /is at 0002-pipeline, of an earlier/,
    mend: /empty database/,
  },
  {
    what: 'a newer schema',
    break: async (_, bed) => ({ DATABASE_URL: await createSchema(bed, ['2026-11-19-initial', '9999-future']) }),
    name: 'schema',
    text: /9999-future/,
    mend: /later one/,
  },
  {
    what: 'a policy of placeholders',
    async break(_, bed) {
      const measurement = { mrTd: 'ab'.repeat(48) }
      const path = await writeJson(bed, 'placeholder.json', {
        measurements: [measurement],
        configHashes: ['00'.repeat(32)],
      })
      return { ENCLAVE_POLICY_FILE: path }
    },
    name: 'policy',
    text: /placeholder/,
    mend: /Measure your own build/,
  },
  {
    what: 'witnesses without keys',
    break: (_, bed) => ({
      RECEIPTS: '2',
      LOG_WITNESSES: `witness.example/w1+7a6d8c1e+BJoYAVZ9ClHLQnDjlTdcH3xN1bZ0h1uF0H1g@http://${bed.nobody}`,
    }),
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^LOG_WITNESSES: expected VKEY@URL/,
    mend: /Set LOG_WITNESSES/,
  },
  {
    what: 'a certificate that has expired',
    break: async (scope) => ({
      PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: new Date('2021-01-01') }),
    }),
    name: 'tls',
    text: /expired, 2021-01-01/,
    mend: /Renew it/,
  },
  {
    what: 'a certificate for another name',
    break: async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'other.example', notAfter: days(90) }) }),
    name: 'tls',
    text: /another name/,
    mend: /Get one for localhost/,
  },
  {
    what: 'a certificate of nobody',
    break: async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: days(90) }) }),
    name: 'tls',
    state: 'warning',
    text: /browsers do not trust/,
    mend: /known authority/,
  },
  {
    what: 'https without trusted proxies',
    break: async (scope) => ({ PUBLIC_URL: await serveTls(scope, { name: 'localhost', notAfter: days(90) }) }),
    name: 'proxies',
    state: 'warning',
    text: /share the limits/,
    mend: /TRUSTED_PROXIES/,
  },
  {
    what: 'no proxy there',
    break: () => ({ PUBLIC_URL: 'https://localhost:1' }),
    name: 'tls',
    state: 'warning',
    text: /nothing listens/,
    mend: /first start of the proxy/,
  },
  {
    what: 'a page on another site',
    break: () => ({ ALLOWED_ORIGINS: 'https://app.example.com' }),
    name: 'cookies',
    text: /nobody stays signed in/,
    mend: /COOKIE_SAMESITE=none/,
  },
  {
    what: 'a page that anybody can change',
    break: () => ({ ALLOWED_ORIGINS: 'http://app.example.com' }),
    name: 'origins',
    text: /plain http/,
    mend: /https/,
  },
  {
    what: 'proxies that cannot be read',
    break: () => ({ TRUSTED_PROXIES: '10.0.0.0/99' }),
    name: 'proxies',
    text: /not an address or CIDR range/,
    mend: /TRUSTED_PROXIES/,
  },
  {
    what: 'everybody as a proxy',
    break: () => ({ TRUSTED_PROXIES: '0.0.0.0/0' }),
    name: 'proxies',
    text: /nearly anybody/,
    mend: /TRUSTED_PROXIES/,
  },
]
