import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { findProgram } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { programOf } from './test/containers.ts'
import {
  type Compose,
  compose,
  composeTemplate,
  containers,
  envExample,
  interpolate,
  read,
  startExample,
  toContainers,
} from './test/manifests.ts'
import { readContainerConfig } from './test/readContainerConfig.ts'

const HAPROXY = findProgram('haproxy')
if (HAPROXY === undefined) console.log('HAProxy not found: skipping the check of its configuration files')

describe('the Compose file', () => {
  test('starts three coordinators, two workers and one database', () => {
    const names = containers.compose?.map(programOf)
    expect(names?.filter((name) => name === 'coordinator')).toHaveLength(3)
    expect(names?.filter((name) => name === 'worker')).toHaveLength(2)
    expect(names?.filter((name) => name === 'enclave')).toHaveLength(1)
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(['postgres', 'kubo', 'proxy', 'metrics', 'web']),
    )
  })

  test('gives each process in a network namespace its own port, which proxy and metrics use', () => {
    const portsOf = (key: string) => containers.compose?.flatMap(({ env }) => env[key] ?? []) ?? []
    const coordinators = (containers.compose ?? []).filter((container) => programOf(container) === 'coordinator')
    const workers = (containers.compose ?? []).filter((container) => programOf(container) === 'worker')
    const shared = [...portsOf('PORT').filter((port) => port !== '8090'), ...portsOf('METRICS_PORT')]
    expect(new Set(shared).size).toBe(shared.length)
    const servers = [...read('deploy/compose/haproxy.cfg').matchAll(/server coordinator-\d 127\.0\.0\.1:(\d+)/g)].map(
      (match) => match[1],
    )
    // Once in the backend for ready coordinators, and once in the one without.
    const ports = coordinators.map(({ env }) => env.PORT)
    expect(servers).toEqual([...ports, ...ports])
    const targets = [...read('deploy/compose/prometheus.yml').matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => match[1])
    expect(targets).toEqual([...coordinators, ...workers].map(({ env }) => env.METRICS_PORT))
  })

  test('the enclave script takes only the settings of a start from the unmeasured file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-compose-'))
    try {
      for (const name of ['deploy/compose', 'bin', 'secrets']) mkdirSync(join(folder, name), { recursive: true })
      cpSync(join(import.meta.dirname, 'compose/enclave.sh'), join(folder, 'deploy/compose/enclave.sh'))
      writeFileSync(join(folder, 'deploy/.env'), `ENCLAVE_IMAGE=measured\nSECRETS_DIR=${join(folder, 'secrets')}\n`)
      writeFileSync(join(folder, 'bin/docker'), '#!/bin/sh\necho "$@"\nenv\n', { mode: 0o755 })
      const run = (start: string) => {
        writeFileSync(join(folder, 'secrets/start.env'), start)
        const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
        return spawnSync('sh', [join(folder, 'deploy/compose/enclave.sh')], { env, encoding: 'utf8' })
      }
      const hostile =
        'ENCLAVE_IMAGE=other\nCOMPOSE_FILE=/x\nROOT_SECRET_BACKUP_FILE=$(id)\nROOT_SECRET_FROM=recover\nLOG_ORIGINS=log.example/a\nLOG_WITNESSES=none\n'
      const { stdout, status } = run(hostile)
      expect(status).toBe(0)
      expect(stdout.split('\n')[0]).toMatch(
        /^compose --env-file \S+\/\.env -f \S+\/compose\.yaml --profile enclave up -d$/,
      )
      expect(stdout).not.toMatch(/ENCLAVE_IMAGE|COMPOSE_FILE|LOG_WITNESSES|uid=/)
      expect(parseEnv(stdout)).toMatchObject({
        ROOT_SECRET_FROM: 'recover',
        ROOT_SECRET_BACKUP_FILE: '$(id)',
        ROOT_SECRET_NEW_BACKUP_FILE: '',
        LOG_ORIGINS: 'log.example/a',
      })
      expect(run('ROOT_SECRET=file:/x\n')).toMatchObject({ status: 1, stdout: '' })
    } finally {
      rmSync(folder, { recursive: true })
    }
    const measured = parseEnv(read('deploy/compose.env.example'))
    // The coordinators' guest has no other values, and Compose interpolates the whole file.
    expect(() => interpolate(composeTemplate, measured)).not.toThrow()
    expect(Object.keys(measured).filter((name) => /^(ROOT_SECRET|LOG_ORIGINS)/.test(name))).toEqual([])
    expect(Object.keys(startExample)).toEqual(['ROOT_SECRET_FROM'])
  })

  test('requires every value that it needs, and the example sets them all', () => {
    expect(() => interpolate(composeTemplate, { ...envExample, PUBLIC_URL: '' })).toThrow('PUBLIC_URL is not set')
    const required = [...read('deploy/compose.yaml').matchAll(/\$\{(\w+)/g)].map((match) => match[1] ?? '')
    const example = read('deploy/compose.env.example') + read('deploy/compose/start.env.example')
    expect([...new Set(required)].filter((name) => !example.includes(name))).toEqual([])
  })

  test("accepts a beacon instead of the satellite's key", () => {
    const beacon = { ENTROPY_SOURCE: 'drand', ENTROPY_DRAND: 'quicknet', ENTROPY_PUBLIC_KEY: '', RECEIPTS: '2' }
    const started = toContainers(interpolate(composeTemplate, { ...envExample, ...beacon }) as Compose)
    const configOf = (program: string) =>
      started.filter((one) => programOf(one) === program).map((one) => readContainerConfig(one))
    expect(configOf('coordinator')).toMatchObject(Array(3).fill({ entropy: { kind: 'drand' } }))
    expect(configOf('enclave')).toMatchObject([{ settings: { entropy: [{ kind: 'drand' }] } }])
    const neither = toContainers(interpolate(composeTemplate, { ...envExample, ENTROPY_PUBLIC_KEY: '' }) as Compose)
    for (const one of neither.filter((one) => ['coordinator', 'enclave'].includes(programOf(one) ?? ''))) {
      expect(() => readContainerConfig(one)).toThrow('1 fault')
    }
  })

  test('passes a collateral cache to coordinators and enclaves', () => {
    const COLLATERAL_URL = 'https://pccs.example'
    const started = toContainers(interpolate(composeTemplate, { ...envExample, COLLATERAL_URL }) as Compose)
    const required = started.filter(({ env }) => env.COLLATERAL_URL === COLLATERAL_URL).map(({ where }) => where)
    expect(required).toEqual(['enclave', 'coordinator-doctor', 'coordinator-1', 'coordinator-2', 'coordinator-3'])
  })
})

describe('the proxy', () => {
  const text = read('deploy/compose/haproxy.cfg')

  test.skipIf(HAPROXY === undefined)('HAProxy accepts its configuration and the one for PostgreSQL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-haproxy-'))
    try {
      // Checks the file without its certificate.
      const plain = text.replace(' ssl crt /run/secrets/tls.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2', '')
      for (const [name, each] of Object.entries({ plain, postgres: read('deploy/failover/haproxy.cfg') })) {
        writeFileSync(join(folder, name), each)
        execFileSync(HAPROXY ?? '', ['-c', '-q', '-f', join(folder, name)], { env: { APP_HOST: 'app.example' } })
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
