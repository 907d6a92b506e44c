import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { settingNames } from '@countersign/service'
import { measureSimulatedEnclave, startFakeChain } from '@countersign/testing'
import { COMPILE_CACHE, toPath } from '@countersign/testing/launcher'
import { type Scope, withScope } from '@countersign/testing/stack'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Bed,
  examineWith,
  PIN_TOKEN,
  type Settings,
  serve,
  serveSilence,
  serveTls,
  startBed,
  writeJson,
} from '../test/doctorBed.ts'
import type { NamedFinding, State } from './doctor/check.ts'
import { type CheckName, checkNames } from './doctor/names.ts'
import { lockDataDir } from './store/lockDataDir.ts'

let bed: Bed
/** Everything that any doctor has said. */
const said: string[] = []
beforeAll(async () => {
  bed = await startBed()
}, 180_000)
afterAll(() => bed?.stop())

/** The settings of the bed that must be read nowhere. */
const secretsOf = (env: Settings) =>
  ['OIDC_GOOGLE_CLIENT_SECRET', 'PUBLISHER_PRIVATE_KEY', 'IPFS_API_TOKEN'].flatMap((name) => env[name] ?? [])

async function examine(env: Settings, args: readonly string[] = [], now = Date.now) {
  const { code, stdout, stderr } = await examineWith(env, ['--json', ...args], { now })
  said.push(stdout, stderr)
  const { checks } = JSON.parse(stdout) as { checks: NamedFinding[] }
  return { code, checks, of: (name: CheckName) => checks.filter((each) => each.name === name) }
}

/** As people run it. */
async function spawnDoctor(env: Settings, args: readonly string[] = []) {
  const { PATH = '' } = process.env
  const set = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  const run = promisify(execFile)(
    process.execPath,
    ['-C', 'source', toPath('services/coordinator/src/doctor.ts'), ...args],
    {
      env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...set },
    },
  )
  const result = await run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  )
  said.push(result.stdout, result.stderr)
  return result
}

const withPassword = (url: string, password: string) => Object.assign(new URL(url), { password }).href
const withPath = (url: string, pathname: string) => Object.assign(new URL(url), { pathname }).href

/** A database whose schema has these steps, and nothing else. */
async function createSchema(names: readonly string[]): Promise<string> {
  const name = `schema_${Math.random().toString(16).slice(2)}`
  const admin = new pg.Client({ connectionString: bed.backend.databaseUrl })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = withPath(bed.backend.databaseUrl ?? '', `/${name}`)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table migrations (name text primary key, timestamp text)')
  for (const each of names) await client.query('insert into migrations values ($1, $2)', [each, '2026'])
  await client.end()
  return url
}

const answerJson = (status: number, body: unknown) => (_: unknown, response: import('node:http').ServerResponse) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

test('a service in order: every check that can be made is ok, and exit code 0', async () => {
  const { code, checks } = await examine(bed.env)
  expect(checks.filter(({ state }) => state === 'fault' || state === 'warning')).toEqual([])
  expect(code).toBe(0)
  const looked = new Set(checks.flatMap(({ name, state }) => (state === 'ok' ? [name] : [])))
  expect(checkNames.filter((name) => !looked.has(name))).toEqual(['secrets', 'data-directory', 'disk', 'tls', 'log'])
  const text = (name: CheckName) => checks.find((each) => each.name === name)?.text
  expect(text('pins')).toContain('gave block')
  expect(text('schema')).toContain('as this release wants it')
  expect(text('clock')).toContain('the database')
})

/** What is broken, the settings that differ, and what has to be said. */
type Case = {
  what: string
  break(scope: Scope): Promise<Settings> | Settings
  args?: readonly string[]
  now?: () => number
  name: CheckName
  state?: State
  text: RegExp
  mend: RegExp
}

const NOBODY = '127.0.0.1:1'
const KEY = `0x${'42'.repeat(32)}`
const days = (count: number) => new Date(Date.now() + count * 86_400_000)
const production: Settings = { NODE_ENV: 'production' }

const cases: readonly Case[] = [
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
    break: () => production,
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^MOCK_ATTESTATION: refused in production/,
    mend: /Change MOCK_ATTESTATION/,
  },
  {
    what: 'a variable that changes which code runs',
    break: () => ({ MOCK_ATTESTATION: undefined, NODE_OPTIONS: '--import=x' }),
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^NODE_OPTIONS: refused on real hardware/,
    mend: /Take NODE_OPTIONS out/,
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
    what: 'a publisher’s key of zeros',
    break: () => ({ PUBLISHER_PRIVATE_KEY: `0x${'00'.repeat(32)}` }),
    name: 'chain',
    text: /private key is not one/,
    mend: /Correct .*key/,
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
    text: /^DATABASE_URL: required/,
    mend: /Set DATABASE_URL/,
  },
  {
    what: 'a secret that everybody on the machine can read',
    async break() {
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
    break: () => ({ DATABASE_URL: undefined, DATA_DIR: '/etc/hostname/x' }),
    name: 'data-directory',
    text: /is a file/,
    mend: /Name a folder/,
  },
  {
    what: 'a wrong password',
    break: () => ({ DATABASE_URL: withPassword(bed.backend.databaseUrl ?? '', 'canary-password') }),
    name: 'database',
    text: /password is wrong/,
    mend: /Correct user and password/,
  },
  {
    what: 'no such database',
    break: () => ({ DATABASE_URL: withPath(bed.backend.databaseUrl ?? '', '/nothing') }),
    name: 'database',
    text: /no such database/,
    mend: /Create it/,
  },
  {
    what: 'no database there',
    break: () => ({ DATABASE_URL: `postgres://countersign:canary-password@${NOBODY}/countersign` }),
    name: 'database',
    text: /nothing listens/,
    mend: /DATABASE_URL/,
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
    break: () => ({ DATABASE_URL: `${bed.backend.databaseUrl}?sslmode=verify-full` }),
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
    break: async () => ({ DATABASE_URL: await createSchema(['0001-initial', '0002-pipeline']) }),
    name: 'schema',
    state: 'warning',
    text: /is at 0002-pipeline, and this release wants 0007/,
    mend: /backup/,
  },
  {
    what: 'a newer schema',
    break: async () => ({ DATABASE_URL: await createSchema(['0001-initial', '9999-future']) }),
    name: 'schema',
    text: /9999-future/,
    mend: /newer/,
  },
  {
    what: 'a policy of placeholders',
    async break() {
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
    what: 'no enclave there',
    break: () => ({ ENCLAVE_URL: `http://${NOBODY}` }),
    name: 'enclave',
    text: /nothing listens/,
    mend: /ENCLAVE_URL/,
  },
  {
    what: 'something else than an enclave',
    break: async (scope) => ({ ENCLAVE_URL: await serve(scope, answerJson(404, {})) }),
    name: 'enclave',
    text: /something else than an enclave/,
    mend: /Correct ENCLAVE_URL/,
  },
  {
    what: 'an enclave that says nothing',
    break: async (scope) => ({ ENCLAVE_URL: `http://${await serveSilence(scope)}` }),
    args: ['--timeout', '2'],
    name: 'enclave',
    text: /no answer/,
    mend: /frozen|hangs/,
  },
  {
    what: 'an enclave of another configuration',
    async break() {
      const policy = { measurements: [measureSimulatedEnclave()], configHashes: ['12'.repeat(16) + '34'.repeat(16)] }
      return { ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-configuration.json', policy) }
    },
    name: 'enclave',
    text: /does not name its configuration/,
    mend: /configHashes/,
  },
  {
    what: 'an enclave of another build',
    async break() {
      const measurement = { ...measureSimulatedEnclave(), mrTd: '12'.repeat(24) + '34'.repeat(24) }
      const configHashes = [String(bed.backend.enclaveFields().configHash)]
      return {
        ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-build.json', { measurements: [measurement], configHashes }),
      }
    },
    name: 'enclave',
    text: /quote is not accepted/,
    mend: /distrust it/,
  },
  {
    what: 'a client that the enclave does not accept',
    break: () => ({ OIDC_GOOGLE_CLIENT_ID: 'another' }),
    name: 'enclave-settings',
    text: /does not accept google/,
    mend: /OIDC_ISSUERS/,
  },
  {
    what: 'entropy that the enclave does not accept',
    break: () => ({ ENTROPY_PUBLIC_KEY: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }),
    name: 'enclave-settings',
    text: /does not accept samples of key d75a/,
    mend: /same ENTROPY_PUBLIC_KEY/,
  },
  {
    what: 'witnesses that do not answer, of an enclave without a log',
    break: () => ({
      RECEIPTS: '2',
      LOG_WITNESSES: `witness.example/w1+7a6d8c1e+BJoYAVZ9ClHLQnDjlTdcH3xN1bZ0h1uF0H1g@http://${NOBODY}`,
    }),
    args: ['--only', 'configuration'],
    name: 'configuration',
    text: /^LOG_WITNESSES: expected VKEY@URL/,
    mend: /Set LOG_WITNESSES/,
  },
  {
    what: 'no entropy there',
    break: () => ({ ENTROPY_URL: `http://${NOBODY}` }),
    name: 'entropy',
    text: /nothing listens/,
    mend: /ENTROPY_URL/,
  },
  {
    what: 'entropy of another key',
    async break(scope) {
      bed.backend.satellite.setFault('foreign-key')
      scope.add(bed, async () => bed.backend.satellite.setFault())
      return {}
    },
    name: 'entropy',
    text: /another key than ENTROPY_PUBLIC_KEY/,
    mend: /key that the source publishes/,
  },
  {
    what: 'entropy whose signature does not hold',
    async break(scope) {
      bed.backend.satellite.setFault('wrong-signature')
      scope.add(bed, async () => bed.backend.satellite.setFault())
      return {}
    },
    name: 'entropy',
    text: /does not hold/,
    mend: /Distrust/,
  },
  {
    what: 'old entropy',
    async break(scope) {
      bed.backend.satellite.setFault('stale')
      scope.add(bed, async () => bed.backend.satellite.setFault())
      return {}
    },
    name: 'entropy',
    text: /too old/,
    mend: /clock/,
  },
  {
    what: 'entropy whose quota is spent',
    break: async (scope) => ({ ENTROPY_URL: await serve(scope, answerJson(429, {})) }),
    name: 'entropy',
    text: /quota is spent \(429\)/,
    mend: /for more/,
  },
  {
    what: 'entropy with credentials that are refused',
    async break(scope) {
      const url = await serve(scope, answerJson(401, {}))
      const source = { ENTROPY_SOURCE: 'orbitport', ENTROPY_ALLOW_UNSIGNED: 'true', ENTROPY_AUTH_URL: url }
      return { ...source, ENTROPY_URL: url, ENTROPY_CLIENT_ID: 'x', ENTROPY_CLIENT_SECRET: 'canary-secret' }
    },
    name: 'entropy',
    text: /refuses the credentials/,
    mend: /ENTROPY_CLIENT_SECRET/,
  },
  {
    what: 'a token that the pin service refuses',
    break: () => ({ IPFS_API_TOKEN: 'canary-token' }),
    name: 'pins',
    text: /refuses the credentials/,
    mend: /IPFS_API_TOKEN/,
  },
  {
    what: 'no pin service there',
    break: () => ({ IPFS_API_URL: `http://${NOBODY}` }),
    name: 'pins',
    text: /nothing listens/,
    mend: /IPFS_API_URL/,
  },
  {
    what: 'something else than a pin service',
    break: async (scope) => ({
      IPFS_API_URL: await serve(scope, (_, response) => void response.end('<!doctype html>')),
    }),
    name: 'pins',
    text: /no usable answer/,
    mend: /IPFS_API_URL/,
  },
  {
    what: 'a pin service that gives other bytes',
    async break(scope) {
      bed.kubo.setFault('flipped')
      scope.add(bed, async () => bed.kubo.setFault())
      return {}
    },
    name: 'pins',
    text: /other bytes/,
    mend: /Distrust/,
  },
  {
    what: 'an RPC of another chain',
    break: () => ({ CHAIN_ID: '1' }),
    name: 'chain',
    text: /configured 1, but the RPC is of 31337/,
    mend: /Correct CHAIN_ID/,
  },
  {
    what: 'no contract there',
    break: () => ({ ATTESTATIONS_ADDRESS: `0x${'11'.repeat(20)}` }),
    name: 'chain',
    text: /no code at/,
    mend: /deploy:contract/,
  },
  {
    what: 'an account that may not publish',
    break: () => ({ PUBLISHER_PRIVATE_KEY: KEY }),
    name: 'chain',
    text: /the publisher is 0x/,
    mend: /setPublisher/,
  },
  {
    what: 'no node there',
    break: () => ({ RPC_URL: `http://user:canary-password@${NOBODY}/canary-path` }),
    name: 'chain',
    text: /RPC/,
    mend: /RPC_URL/,
  },
  {
    what: 'something else than a node',
    break: async (scope) => ({ RPC_URL: `${await serve(scope, answerJson(401, { no: 1 }))}/canary-path` }),
    name: 'chain',
    text: /no usable answer/,
    mend: /its key is valid/,
  },
  {
    what: 'an empty account',
    async break(scope) {
      const publisher = bed.contract.chain.accounts[1]?.address ?? '0x'
      const chain = scope.add(await startFakeChain({ publisher }), ({ stop }) => stop())
      chain.setBalance(publisher, 1n)
      return { RPC_URL: chain.url, ATTESTATIONS_ADDRESS: chain.contract }
    },
    name: 'balance',
    text: /not enough for one publication/,
    mend: /Send funds to 0x/,
  },
  {
    what: 'an account that is nearly empty',
    async break(scope) {
      const publisher = bed.contract.chain.accounts[1]?.address ?? '0x'
      const chain = scope.add(await startFakeChain({ publisher }), ({ stop }) => stop())
      chain.setBalance(publisher, 10n ** 15n)
      return { RPC_URL: chain.url, ATTESTATIONS_ADDRESS: chain.contract }
    },
    name: 'balance',
    state: 'warning',
    text: /enough for about \d+ publications/,
    mend: /Send funds to 0x/,
  },
  {
    what: 'a node that has stopped',
    async break(scope) {
      const publisher = bed.contract.chain.accounts[1]?.address ?? '0x'
      const now = () => Date.now() - 7_200_000
      const chain = scope.add(await startFakeChain({ publisher, now }), ({ stop }) => stop())
      return { ...production, RPC_URL: chain.url, ATTESTATIONS_ADDRESS: chain.contract }
    },
    args: ['--worker'],
    name: 'chain-head',
    text: /minutes old/,
    mend: /follows the chain/,
  },
  {
    what: 'no identity provider there',
    break: () => ({ OIDC_GOOGLE_ISSUER: `http://${NOBODY}` }),
    name: 'sign-in',
    text: /nothing listens/,
    mend: /OIDC_GOOGLE_ISSUER/,
  },
  {
    what: 'an issuer that is another',
    break: async (scope) => ({
      OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(200, { issuer: 'https://other.example' })),
    }),
    name: 'sign-in',
    text: /of another issuer/,
    mend: /exactly as "issuer"/,
  },
  {
    what: 'no OpenID provider',
    break: async (scope) => ({ OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(404, {})) }),
    name: 'sign-in',
    text: /no metadata/,
    mend: /well-known/,
  },
  {
    what: 'a redirect URI that is not registered',
    break: () => ({ PUBLIC_URL: 'http://localhost:1234' }),
    name: 'sign-in',
    text: /redirect URI/,
    mend: /Register http:\/\/localhost:1234\/auth\/google\/callback/,
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
  {
    what: 'a clock that is behind',
    break: () => ({}),
    now: () => Date.now() - 120_000,
    name: 'clock',
    text: /120 s behind that of/,
    mend: /NTP/,
  },
  {
    what: 'a clock that the enclave refuses',
    break: () => ({}),
    now: () => Date.now() + 45_000,
    name: 'enclave',
    text: /more than 30 s apart/,
    mend: /Set both clocks/,
  },
]

test('there are at least 25', () => expect(cases.length).toBeGreaterThanOrEqual(25))

test.each(cases)('broken: $what: $name says so, and how to mend it', async (each) => {
  await withScope(async (scope) => {
    const env = { ...bed.env, ...(await each.break(scope)) }
    const { state = 'fault', name, text, mend } = each
    const { code, checks, of } = await examine(env, each.args, each.now)
    const wanted = { name, state, text: expect.stringMatching(text), mend: expect.stringMatching(mend) }
    expect(of(name)).toContainEqual(wanted)
    // Faults, and nothing but faults, fail; and each of them can be mended.
    expect(code).toBe(checks.some((one) => one.state === 'fault') ? 1 : 0)
    for (const one of checks)
      if (one.state === 'fault' || one.state === 'warning') expect(one.mend).toMatch(/^[A-Z].*\.$/)
    if (state === 'warning')
      expect((await examine(env, [...(each.args ?? []), '--strict', '--only', name], each.now)).code).toBe(1)
  })
})

describe('as a process', () => {
  test('a screen for people, exit code 0; with a fault 1, said in two lines', async () => {
    const well = await spawnDoctor(bed.env)
    expect(well).toMatchObject({ code: 0, stderr: '' })
    expect(well.stdout).toMatch(
      /^ok {7}configuration .*\n(.*\n)*0 faults, 0 warnings, \d+ in order, \d+ not looked at\.\n$/,
    )
    expect(well.stdout.split('\n').length).toBeLessThan(50)
    const ill = await spawnDoctor({ ...bed.env, CHAIN_ID: '1' }, ['--only', 'balance'])
    expect(ill).toMatchObject({ code: 1, stderr: '' })
    expect(ill.stdout).toMatch(
      /^FAULT {4}chain .*\n +→ Correct CHAIN_ID.*\n\nnot looked at: balance \(it needs: chain\)\n/,
    )
  })

  test('one that hangs does not hold it up', async () => {
    await withScope(async (scope) => {
      const silent = await serveSilence(scope)
      const url = `http://${silent}`
      const env = {
        ...bed.env,
        DATABASE_URL: `postgres://x:canary-password@${silent}/x`,
        ENCLAVE_URL: url,
        ENTROPY_URL: url,
        OIDC_GOOGLE_ISSUER: url,
        IPFS_API_URL: url,
        RPC_URL: url,
      }
      const { code, stdout } = await spawnDoctor(env, ['--json', '--timeout', '1'])
      expect(code).toBe(1)
      const { checks } = JSON.parse(stdout) as { checks: NamedFinding[] }
      const faulty = checks.filter(({ state }) => state === 'fault').map(({ name }) => name)
      expect(faulty).toEqual(['database', 'enclave', 'entropy', 'sign-in', 'pins', 'chain'])
    })
  })

  test('the embedded database of a running coordinator: said, and left alone', async () => {
    const { env } = bed
    const dataDir = join(bed.folder, 'embedded')
    await mkdir(join(dataDir, 'database'), { recursive: true })
    const unlock = await lockDataDir(dataDir)
    const embedded = { ...env, DATABASE_URL: undefined, DATA_DIR: dataDir }
    const { of, code } = await examine(embedded)
    expect([code, of('database')[0]?.text]).toEqual([0, expect.stringContaining(`in use by process ${process.pid}`)])
    await unlock()
    expect((await examine(embedded)).of('database')[0]?.text).toContain('not in use')
    expect(await readdir(join(dataDir, 'database'))).toEqual([])
  })

  test('wrong arguments are said, and 2; --config of nothing is a fault', async () => {
    for (const args of [['--only', 'nothing'], ['--timeout', '0'], ['--timeout', 'x'], ['extra'], ['--onyl', 'x']]) {
      expect(await examineWith({}, args)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('usage: '),
      })
    }
    const missing = await examineWith({}, ['--config', '/nowhere/.env'])
    expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining('cannot be read') })
  })
})

test('garbage: whatever the settings hold, it says something, and does not fail itself', async () => {
  const garbage = fc.oneof(
    fc.string({ maxLength: 80, unit: 'binary' }),
    fc.constantFrom(
      '',
      ' ',
      '0',
      '-1',
      '1e999',
      'true',
      'null',
      '{}',
      '[]',
      '%',
      '\0',
      '..',
      '/',
      '/dev/null',
      '/dev/zero/x',
      'http://',
      'https://[',
      'http://127.0.0.1:1',
      'https://127.0.0.1:1',
      'http://127.0.0.1:99999',
      'unix:/nowhere',
      'unix:/dev/null',
      'postgres://127.0.0.1:1/x',
      'postgres://[::1',
      'postgres:///%zz',
      'file:///etc/passwd',
      '0x',
      `0x${'ff'.repeat(32)}`,
      `0x${'00'.repeat(20)}`,
      'a=b',
      'a,b,,c',
      '/ip4/x',
      '127.0.0.1/33',
      '😀',
      'ab'.repeat(32),
      '9'.repeat(400),
    ),
  )
  const names = [
    ...settingNames,
    'OIDC_GOOGLE_ISSUER',
    'OIDC_GOOGLE_CLIENT_ID',
    'OIDC_X_CLIENT_SECRET',
    'OIDC_',
    'NODE_ENV',
  ]
  const settings = fc.dictionary(fc.constantFrom(...names), garbage, { maxKeys: 12, noNullPrototype: true })
  // Traffic stays on this machine: where a default would be asked elsewhere, it is named.
  const local = {
    OIDC_GOOGLE_ISSUER: `http://${NOBODY}`,
    COLLATERAL_URL: `http://${NOBODY}`,
    SNP_CERTS_FILE: '/nowhere',
  }
  const property = fc.asyncProperty(settings, fc.boolean(), fc.boolean(), async (changes, isBare, isWorker) => {
    const env = { ...(isBare ? local : bed.env), ...changes }
    const { stdout, code, stderr } = await examineWith(env, [
      '--json',
      '--timeout',
      '2',
      ...(isWorker ? ['--worker'] : []),
    ])
    const { checks } = JSON.parse(stdout) as { checks: NamedFinding[] }
    expect(stderr).toBe('')
    expect(checks.length).toBeGreaterThan(0)
    expect(code).toBe(checks.some(({ state }) => state === 'fault') ? 1 : 0)
    expect(checks.filter(({ text }) => /fault of the doctor|could not be looked at/.test(text))).toEqual([])
  })
  await fc.assert(property, { numRuns: 60 })
})

test('nothing that any of them said has a secret in it', () => {
  const all = said.join('\n')
  expect(all.length).toBeGreaterThan(10_000)
  const password = new URL(bed.backend.databaseUrl ?? '').password
  for (const secret of [...secretsOf(bed.env), password, KEY.slice(2), 'canary-']) expect(all).not.toContain(secret)
})
