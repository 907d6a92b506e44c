import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseCommand as parseDoctorCommand } from '../services/coordinator/src/operate/doctor/runDoctor.ts'
import { launchedBy } from './launcher/launchers.ts'
import { type Container, isDoctor, type Program, programOf } from './test/containers.ts'
import { containers, read } from './test/manifests.ts'
import { readContainerConfig } from './test/readContainerConfig.ts'

const ours = Object.entries(containers).flatMap(([kind, list]) =>
  list.flatMap((container) => {
    const program = programOf(container)
    return program === undefined ? [] : [[`${kind}: ${container.where}`, program, container] as const]
  }),
)
const doctors = Object.entries(containers).flatMap(([kind, list]) =>
  list.filter(isDoctor).map((container) => [`${kind}: ${container.where}`, container] as const),
)
const services = ours.filter(([, program]) => program !== 'web')

const withEnv = (container: Container, env: Record<string, string>) => ({
  ...container,
  env: { ...container.env, ...env },
})

describe('every container', () => {
  const expected: Record<Program, object> = {
    enclave: { isProduction: true, listen: { kind: 'https', host: '0.0.0.0' }, callerPolicy: { kind: 'attested' } },
    coordinator: { mode: 'production', isMock: false, reportSource: 'configfs', pipeline: undefined },
    worker: { config: { pinner: { kind: 'kubo', apiUrl: 'http://127.0.0.1:5001' }, chain: { chainId: 11_155_111 } } },
    web: {},
  }

  test.each(services)('%s accepts its configuration', (_, program, container) => {
    expect(readContainerConfig(container)).toMatchObject(expected[program])
  })

  test.each(services)('%s sets only documented variables that its program reads', (_, program, container) => {
    const named = new Set(
      [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1] ?? ''),
    )
    const keysRead = new Set<string>()
    // Each entropy source reads other variables.
    for (const source of [{}, { ENTROPY_SOURCE: 'drand', RECEIPTS: '2' }]) {
      readContainerConfig(withEnv(container, source), {}, (key) => keysRead.add(key))
    }
    // Coordinators find identity providers by the names of the variables.
    const isRead = (key: string) => keysRead.has(key) || (program === 'coordinator' && key.startsWith('OIDC_'))
    const keys = Object.keys(container.env)
    expect(keys.filter((key) => !named.has(key) || !isRead(key))).toEqual([])
  })

  test.each(doctors)('%s checks the configuration of its program', (where, container) => {
    const program = container.args.includes('--worker') ? 'worker' : 'coordinator'
    const looked = { ...container, args: program === 'worker' ? ['worker'] : [] }
    expect(readContainerConfig(looked)).toMatchObject(expected[program])
    const [kind = ''] = where.split(':')
    const own = new Set(['PORT', 'HOST', 'METRICS_PORT'])
    const settingsOf = ({ env }: Container) =>
      Object.fromEntries(Object.entries(env).filter(([name]) => !own.has(name)))
    const others = services.filter(([other, name]) => name === program && other.startsWith(`${kind}:`))
    expect(others.length).toBeGreaterThan(0)
    for (const [, , other] of others) {
      expect(settingsOf(container)).toEqual(settingsOf(other))
      expect(container.mounts.toSorted()).toEqual(other.mounts.toSorted())
    }
    // A service that is only temporarily down must not prevent a start.
    const doctor = parseDoctorCommand(container.args.slice(1))
    if (doctor.kind !== 'run' || doctor.only === undefined) throw new Error('the doctor runs all checks')
    const outside: readonly string[] = [
      'database',
      'database-tls',
      'schema',
      'enclave',
      'enclave-settings',
      'collateral',
      'entropy',
      'sign-in',
      'pins',
      'chain',
      'balance',
      'chain-head',
      'tls',
      'log',
      'clock',
    ]
    expect(doctor.only.filter((name) => outside.includes(name))).toEqual([])
  })

  test('an invalid configuration is detected', () => {
    const [, , enclave] = services.find(([, program]) => program === 'enclave') ?? []
    const [, , coordinator] = services.find(([, program]) => program === 'coordinator') ?? []
    const [, , worker] = services.find(([, program]) => program === 'worker') ?? []
    if (!enclave || !coordinator || !worker) throw new Error('expected one container of each program')
    for (const broken of [
      { ...enclave, mounts: [] },
      withEnv(enclave, { LISTEN: 'http' }),
      withEnv(enclave, { MOCK_ATTESTATION: 'true' }),
      { ...coordinator, mounts: [] },
      withEnv(coordinator, { PUBLIC_URL: 'http://api.example.com' }),
      withEnv(coordinator, { ENCLAVE_URL: 'http://127.0.0.1:8090' }),
      withEnv(worker, { IPFS_API_URL: 'http://kubo:5001' }),
      { ...worker, mounts: ['/run/secrets/worker-database-url'] },
    ]) {
      expect(() => readContainerConfig(broken)).toThrow()
    }
  })

  test('of a coordinator passes the database to admin, which operators run in it', () => {
    const [, , coordinator] = ours.find(([where]) => where === 'compose: coordinator-1') ?? []
    const admin = launchedBy('coordinator', 'admin')
    expect(admin?.takesArguments).toBe(true)
    const given = admin?.env.filter((name) => coordinator?.env[name]).toSorted()
    expect(given).toEqual(['DATABASE_URL_FILE'])
  })

  test('uses one of our images, or an image with the same version everywhere', () => {
    const images = Object.values(containers).flatMap((list) => list.map(({ image }) => image))
    const versions = new Map<string, Set<string>>()
    for (const image of images.filter((name) => !name.includes('countersign-'))) {
      const name = image.replace(/:[^:/]*$/, '')
      versions.set(name, (versions.get(name) ?? new Set()).add(image))
    }
    expect([...versions.values()].filter((set) => set.size > 1)).toEqual([])
    const own = new Set(
      images.filter((image) => image.includes('countersign-')).map((image) => basename(image).replace(/[@:].*/, '')),
    )
    expect([...own].sort()).toEqual(['countersign-coordinator', 'countersign-enclave', 'countersign-web'])
  })
})
