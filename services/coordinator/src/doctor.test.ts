import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { settingNames } from '@countersign/service'
import { COMPILE_CACHE, createWitnessFolders, startWitness, toPath, writeLogList } from '@countersign/testing/launcher'
import { withScope } from '@countersign/testing/stack'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bed, runDoctorWith, type Settings, serveSilence, startBed } from '../test/doctor/bed.ts'
import { localCases } from '../test/doctor/localCases.ts'
import { LOG, outsideCases, STRANGERS_KEY } from '../test/doctor/outsideCases.ts'
import type { NamedFinding } from './operate/doctor/check.ts'
import { type CheckName, checkNames } from './operate/doctor/check.ts'

let bed: Bed
/** All output of all doctors. */
const output: string[] = []
beforeAll(async () => {
  bed = await startBed()
}, 180_000)
afterAll(() => bed?.stop())

/** Settings whose values must not appear in any output. */
const secretsOf = (env: Settings) =>
  ['OIDC_GOOGLE_CLIENT_SECRET', 'PUBLISHER_PRIVATE_KEY', 'IPFS_API_TOKEN'].flatMap((name) => env[name] ?? [])

async function diagnose(env: Settings, args: readonly string[] = [], now = Date.now) {
  const { code, stdout, stderr } = await runDoctorWith(env, ['--json', ...args], { now })
  output.push(stdout, stderr)
  const { checks } = JSON.parse(stdout) as { checks: (Omit<NamedFinding, 'fix'> & { mend?: string })[] }
  return { code, checks, of: (name: CheckName) => checks.filter((each) => each.name === name) }
}

/** Runs the doctor as a process. */
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
  output.push(result.stdout, result.stderr)
  return result
}

test('a healthy service passes every check that runs, with exit code 0', async () => {
  const { code, checks } = await diagnose(bed.env)
  expect(checks.filter(({ state }) => state === 'fault' || state === 'warning')).toEqual([])
  expect(code).toBe(0)
  const passed = new Set(checks.flatMap(({ name, state }) => (state === 'ok' ? [name] : [])))
  expect(checkNames.filter((name) => !passed.has(name))).toEqual([
    'secrets',
    'data-directory',
    'disk',
    'checkpoints',
    'tls',
    'log',
  ])
  const text = (name: CheckName) => checks.find((each) => each.name === name)?.text
  expect(text('pins')).toContain('returned block')
  expect(text('schema')).toContain('up to date')
  expect(text('clock')).toContain('the database')
})

const cases = [...localCases, ...outsideCases]

test.each(cases)('%s reports %s', async (name, text, breakIt, { state = 'fault', args = [], now } = {}) => {
  await withScope(async (scope) => {
    const env = { ...bed.env, ...(await breakIt(scope, bed)) }
    const { code, checks, of } = await diagnose(env, args, now)
    expect(of(name)).toContainEqual({ name, state, text: expect.stringMatching(text), mend: expect.any(String) })
    // Only faults change the exit code, and every finding has a fix.
    expect(code).toBe(checks.some((one) => one.state === 'fault') ? 1 : 0)
    for (const one of checks)
      if (one.state === 'fault' || one.state === 'warning') expect(one.mend).toMatch(/^[A-Z].*\.$/)
    if (state === 'warning') expect((await diagnose(env, [...args, '--strict', '--only', name], now)).code).toBe(1)
  })
})

test('reports a running witness without having anything cosigned', async () => {
  await withScope(async (scope) => {
    const [witness] = await createWitnessFolders(join(bed.folder, 'witnesses'), 1)
    if (witness === undefined) throw new Error('no witness')
    const logsFile = join(bed.folder, 'logs')
    await writeLogList(logsFile, [LOG])
    const service = scope.add(startWitness({ ...witness, logsFile }), ({ kill }) => kill('SIGKILL'))
    const { address } = await service.started
    const env = { ...bed.env, RECEIPTS: '2', LOG_WITNESSES: `${witness.vkey}@${address}` }
    const { of } = await diagnose(env, ['--only', 'log'])
    expect(of('log')).toEqual([{ name: 'log', state: 'ok', text: 'witness.localhost/w1 answers' }])
    const elsewhere = await diagnose({ ...env, LOG_WITNESSES: `${witness.vkey}@${address}/elsewhere` }, [
      '--only',
      'log',
    ])
    expect(elsewhere.of('log')).toMatchObject([{ state: 'warning', text: expect.stringContaining('not a witness') }])
  })
})

describe('as a process', () => {
  test('prints a report that fits on a screen, and exits with 1 if there is a fault', async () => {
    const well = await spawnDoctor(bed.env)
    expect(well).toMatchObject({ code: 0, stderr: '' })
    expect(well.stdout).toMatch(/^ok {7}configuration .*\n(.*\n)*0 faults, 0 warnings, \d+ ok, \d+ skipped\.\n$/)
    expect(well.stdout.split('\n').length).toBeLessThan(50)
    const ill = await spawnDoctor({ ...bed.env, CHAIN_ID: '1' }, ['--only', 'balance'])
    expect(ill).toMatchObject({ code: 1, stderr: '' })
    expect(ill.stdout).toMatch(/^FAULT {4}chain .*\n +→ Correct CHAIN_ID.*\n\nskipped: balance \(needs: chain\)\n/)
  })

  test('a check that hangs does not delay the others', async () => {
    await withScope(async (scope) => {
      const silent = await serveSilence(scope)
      const url = `http://${silent}`
      const env = {
        ...bed.env,
        DATABASE_URL: `postgres://x:canary-password@${silent}/x`,
        ENTROPY_URL: url,
        OIDC_GOOGLE_ISSUER: url,
        IPFS_API_URL: url,
        RPC_URL: url,
      }
      // Not the enclave: its check needs a report, which may time out too on a busy machine. A case above covers it.
      const hanging = ['database', 'entropy', 'sign-in', 'pins', 'chain']
      const { code, stdout } = await spawnDoctor(env, ['--json', '--timeout', '1', '--only', hanging.join()])
      expect(code).toBe(1)
      const { checks } = JSON.parse(stdout) as { checks: NamedFinding[] }
      const faulty = checks.filter(({ state }) => state === 'fault').map(({ name }) => name)
      expect(faulty).toEqual(hanging)
    })
  })

  test('invalid arguments exit with 2, and a missing --config file is a fault', async () => {
    for (const args of [['--only', 'nothing'], ['--timeout', '0'], ['--timeout', 'x'], ['extra'], ['--onyl', 'x']]) {
      expect(await runDoctorWith({}, args)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('usage: '),
      })
    }
    const worker = await runDoctorWith({}, ['--worker', '--only', 'enclave'])
    expect(worker).toMatchObject({ code: 0, stdout: expect.stringContaining('enclave (a worker has no such check)') })
    const missing = await runDoctorWith({}, ['--config', '/nowhere/.env'])
    expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining('cannot be read') })
  })
})

test('random settings never make the doctor itself fail', async () => {
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
  // Replaces defaults that name other hosts.
  const local = {
    OIDC_GOOGLE_ISSUER: `http://${bed.closedAddress}`,
    COLLATERAL_URL: `http://${bed.closedAddress}`,
    SNP_CERTS_FILE: '/nowhere',
  }
  const property = fc.asyncProperty(settings, fc.boolean(), fc.boolean(), async (changes, isBare, isWorker) => {
    const env = { ...(isBare ? local : bed.env), ...changes }
    const { stdout, code, stderr } = await runDoctorWith(env, [
      '--json',
      '--timeout',
      '2',
      ...(isWorker ? ['--worker'] : []),
    ])
    const { checks } = JSON.parse(stdout) as { checks: NamedFinding[] }
    expect(stderr).toBe('')
    expect(checks.length).toBeGreaterThan(0)
    expect(code).toBe(checks.some(({ state }) => state === 'fault') ? 1 : 0)
    expect(checks.filter(({ text }) => /bug in the doctor|the check failed/.test(text))).toEqual([])
  })
  await fc.assert(property, { numRuns: 60 })
})

test('no output contains a secret', () => {
  const all = output.join('\n')
  expect(all.length).toBeGreaterThan(10_000)
  const password = new URL(bed.backend.databaseUrl ?? '').password
  for (const secret of [...secretsOf(bed.env), password, STRANGERS_KEY.slice(2), 'canary-'])
    expect(all).not.toContain(secret)
})
