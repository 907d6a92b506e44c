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

  test.each(services)('%s starts with what it is given', (_, program, container) => {
    expect(readContainerConfig(container)).toMatchObject(expected[program])
  })

  test.each(services)('%s sets only what is explained, and what its program reads', (_, program, container) => {
    const named = new Set(
      [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1] ?? ''),
    )
    const asked = new Set<string>()
    // What is read of one source of entropy is not of another.
    for (const source of [{}, { ENTROPY_SOURCE: 'drand', RECEIPTS: '2' }]) {
      readContainerConfig(withEnv(container, source), {}, (key) => asked.add(key))
    }
    // Coordinators find their identity providers by the names of the keys.
    const isRead = (key: string) => asked.has(key) || (program === 'coordinator' && key.startsWith('OIDC_'))
    const keys = Object.keys(container.env)
    expect(keys.filter((key) => !named.has(key) || !isRead(key))).toEqual([])
  })

  test.each(doctors)('%s looks at what its program starts with', (where, container) => {
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
    // Nothing that is only away for a while keeps a program from starting.
    const asked = parseDoctorCommand(container.args.slice(1))
    if (asked.kind !== 'run' || asked.only === undefined) throw new Error('it looks at everything')
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
    expect(asked.only.filter((name) => outside.includes(name))).toEqual([])
  })

  test('that would not start is noticed', () => {
    const [, , enclave] = services.find(([, program]) => program === 'enclave') ?? []
    const [, , coordinator] = services.find(([, program]) => program === 'coordinator') ?? []
    const [, , worker] = services.find(([, program]) => program === 'worker') ?? []
    if (!enclave || !coordinator || !worker) throw new Error('there is one of each')
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

  test('of a coordinator gives admin, which operators run in its place, the database', () => {
    const [, , coordinator] = ours.find(([where]) => where === 'compose: coordinator-1') ?? []
    const admin = launchedBy('coordinator', 'admin')
    expect(admin?.takesArguments).toBe(true)
    const given = admin?.env.filter((name) => coordinator?.env[name]).toSorted()
    expect(given).toEqual(['DATABASE_URL_FILE'])
  })

  test('of ours is one of three images, and other images are the same everywhere', () => {
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
