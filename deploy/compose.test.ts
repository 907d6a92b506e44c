import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { findProgram } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { type Compose, checkCompose, interpolate, toContainers } from './rules/checkCompose.ts'
import { checkProxy } from './rules/checkProxy.ts'
import { programOf } from './rules/containers.ts'
import { findSchemaFaults } from './test/composeSchema.ts'
import {
  compose,
  composeContext,
  composeTemplate,
  containers,
  envExample,
  read,
  startExample,
} from './test/manifests.ts'
import { readContainerConfig } from './test/readContainerConfig.ts'

const HAPROXY = findProgram('haproxy')
if (HAPROXY === undefined) console.log('HAProxy did not check its files: it is not here')

describe('the Compose file', () => {
  test('follows the schema', () => {
    expect(findSchemaFaults(compose)).toEqual([])
    expect(findSchemaFaults({ services: { a: { imaage: 'x' } } })).not.toEqual([])
  })

  test('keeps our own rules', () => {
    expect(checkCompose(compose, composeContext)).toEqual([])
  })

  test('has the topology: three coordinators, two workers, one database', () => {
    const names = containers.compose?.map(programOf)
    expect(names?.filter((name) => name === 'coordinator')).toHaveLength(3)
    expect(names?.filter((name) => name === 'worker')).toHaveLength(2)
    expect(names?.filter((name) => name === 'enclave')).toHaveLength(1)
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(['postgres', 'kubo', 'proxy', 'metrics', 'web']),
    )
  })

  test('everybody in one network namespace has a port of his own, and proxy and metrics know them', () => {
    const portsOf = (key: string) => containers.compose?.flatMap(({ env }) => env[key] ?? []) ?? []
    const coordinators = (containers.compose ?? []).filter((container) => programOf(container) === 'coordinator')
    const workers = (containers.compose ?? []).filter((container) => programOf(container) === 'worker')
    const shared = [...portsOf('PORT').filter((port) => port !== '8090'), ...portsOf('METRICS_PORT')]
    expect(new Set(shared).size).toBe(shared.length)
    const servers = [...read('deploy/compose/haproxy.cfg').matchAll(/server coordinator-\d 127\.0\.0\.1:(\d+)/g)].map(
      (match) => match[1],
    )
    // Once where those that are ready are asked, and once where none is.
    const ports = coordinators.map(({ env }) => env.PORT)
    expect(servers).toEqual([...ports, ...ports])
    const targets = [...read('deploy/compose/prometheus.yml').matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => match[1])
    expect(targets).toEqual([...coordinators, ...workers].map(({ env }) => env.METRICS_PORT))
  })

  test('what differs from start to start comes from outside of what is measured, and nothing else does', () => {
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
    // The guest of the coordinators has nothing else, and Compose puts values into all of the file.
    expect(() => interpolate(composeTemplate, measured)).not.toThrow()
    expect(Object.keys(measured).filter((name) => /^(ROOT_SECRET|LOG_ORIGINS)/.test(name))).toEqual([])
    expect(Object.keys(startExample)).toEqual(['ROOT_SECRET_FROM'])
  })

  test('asks for every value that it needs, and the example gives it', () => {
    expect(() => interpolate(composeTemplate, { ...envExample, PUBLIC_URL: '' })).toThrow('PUBLIC_URL is not set')
    const asked = [...read('deploy/compose.yaml').matchAll(/\$\{(\w+)/g)].map((match) => match[1] ?? '')
    const example = read('deploy/compose.env.example') + read('deploy/compose/start.env.example')
    expect([...new Set(asked)].filter((name) => !example.includes(name))).toEqual([])
  })

  test('a beacon takes the place of the key of a satellite', () => {
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

  test('a cache of Intel’s collateral is for coordinators and enclaves', () => {
    const COLLATERAL_URL = 'https://pccs.example'
    const started = toContainers(interpolate(composeTemplate, { ...envExample, COLLATERAL_URL }) as Compose)
    const asked = started.filter(({ env }) => env.COLLATERAL_URL === COLLATERAL_URL).map(({ where }) => where)
    expect(asked).toEqual(['enclave', 'coordinator-doctor', 'coordinator-1', 'coordinator-2', 'coordinator-3'])
  })

  type Service = Compose['services'][string]
  test.each<[string, string, (service: Service, all: Compose) => void, RegExp]>([
    [
      'an image that can move',
      'kubo',
      (service) => void Object.assign(service, { image: 'ipfs/kubo:latest' }),
      /not pinned/,
    ],
    [
      'a root that can be written to',
      'web',
      (service) => void Object.assign(service, { read_only: false }),
      /written to/,
    ],
    ['capabilities', 'web', (service) => void Object.assign(service, { cap_drop: [] }), /capabilities/],
    ['new privileges', 'web', (service) => void Object.assign(service, { security_opt: [] }), /gain privileges/],
    [
      'AppArmor before the reports',
      'coordinator-1',
      (service) => void Object.assign(service, { security_opt: ['no-new-privileges:true'] }),
      /AppArmor keeps it/,
    ],
    [
      'no AppArmor without need',
      'web',
      (service) => void service.security_opt?.push('apparmor=unconfined'),
      /without AppArmor/,
    ],
    ['too few threads', 'kubo', (service) => void Object.assign(service, { pids_limit: 256 }), /for its threads/],
    ['any number of processes', 'web', (service) => void Reflect.deleteProperty(service, 'pids_limit'), /any number/],
    [
      'a doctor that looks for ever',
      'worker-doctor',
      (service) => void Object.assign(service, { restart: 'always' }),
      /come back/,
    ],
    [
      'waiting for the end of what goes on',
      'web',
      (service) =>
        void Object.assign(service, { depends_on: { kubo: { condition: 'service_completed_successfully' } } }),
      /kubo never ends/,
    ],
    ['no restart', 'web', (service) => void Object.assign(service, { restart: 'no' }), /come back/],
    ['root without need', 'worker-1', (service) => void Object.assign(service, { user: '0:0' }), /root without need/],
    ['a user by name', 'worker-1', (service) => void Object.assign(service, { user: 'node' }), /not a number/],
    ['no limits', 'web', (service) => void Reflect.deleteProperty(service, 'deploy'), /no limits/],
    [
      'a secret in the environment',
      'web',
      (service) => void Object.assign(service.environment ?? {}, { IPFS_API_TOKEN: 'x' }),
      /IPFS_API_TOKEN is a secret/,
    ],
    [
      'a secret that is gone',
      'proxy',
      (_, all) => void Reflect.deleteProperty(all.secrets ?? {}, 'tls.pem'),
      /no secret tls\.pem/,
    ],
    [
      'a file that is gone',
      'proxy',
      (service) => void Object.assign(service, { volumes: ['./gone:/x:ro'] }),
      /gone is not there/,
    ],
    [
      'a file that can be changed',
      'proxy',
      (service) => void Object.assign(service, { volumes: ['./compose.yaml:/x'] }),
      /can be written to/,
    ],
    [
      'a folder of the machine',
      'proxy',
      (service) => void Object.assign(service, { volumes: ['/etc:/etc:ro'] }),
      /of the machine is open/,
    ],
    [
      'a folder of the machine, the long way round',
      'kubo',
      (service) => void service.volumes?.push('../../../../../../../etc:/x:ro'),
      /etc of the machine is open/,
    ],
    [
      'an image of others with variables from a file',
      'postgres',
      (service) => void Object.assign(service, { env_file: ['/run/x'] }),
      /env_file is not provided for/,
    ],
    [
      'a volume that is gone',
      'kubo',
      (_, all) => void Reflect.deleteProperty(all.volumes ?? {}, 'ipfs'),
      /no volume ipfs/,
    ],
    ['no time to stop', 'web', (service) => void Reflect.deleteProperty(service, 'stop_grace_period'), /how long/],
    [
      'a network of nobody',
      'web',
      (service) => void Object.assign(service, { network_mode: 'service:gone' }),
      /no service gone/,
    ],
    ...['enclave', 'coordinator-1', 'worker-1', 'web'].flatMap(
      (name): [string, string, (service: Service, all: Compose) => void, RegExp][] => [
        [
          `${name}: a file of variables`,
          name,
          (service) => void Object.assign(service, { env_file: ['/run/secrets/coordinator.env'] }),
          /env_file is not provided for/,
        ],
        [
          `${name}: a file of variables for Node`,
          name,
          (service) => void Object.assign(service, { command: ['--env-file=/run/secrets/x', 'main.ts'] }),
          /is no program of its image/,
        ],
        [
          `${name}: a script`,
          name,
          (service) => void Object.assign(service, { command: ['-e', 'x'] }),
          /-e is no program of its image/,
        ],
        [
          `${name}: another entry point`,
          name,
          (service) => void Object.assign(service, { entrypoint: ['/bin/node'] }),
          /entrypoint is not provided for/,
        ],
        [
          `${name}: another working directory`,
          name,
          (service) => void Object.assign(service, { working_dir: '/run' }),
          /working_dir is not provided for/,
        ],
        ...['NODE_OPTIONS', 'LD_PRELOAD', 'LD_AUDIT', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'NODE_ENV', 'HOME'].map(
          (key): [string, string, (service: Service) => void, RegExp] => [
            `${name}: ${key}`,
            name,
            (service) => void Object.assign(service.environment ?? {}, { [key]: 'x' }),
            new RegExp(`${key} does not get through`),
          ],
        ),
        ...[
          '/app/node_modules/planted',
          '/lib/x',
          '/etc/ld.so.preload',
          '/bin',
          '/run',
          '/run/../app/node_modules/planted',
          '/run/secrets/../../bin/launch',
          '/run/./../lib',
          '/run//..',
        ].map((target): [string, string, (service: Service) => void, RegExp] => [
          `${name}: something over ${target}`,
          name,
          (service) => void Object.assign(service, { volumes: [`./compose.yaml:${target}:ro`] }),
          /covers what was measured/,
        ]),
        [
          `${name}: a mount in the long form`,
          name,
          (service) => void Object.assign(service, { volumes: [{ type: 'bind', source: '/', target: '/app' }] }),
          /not in the short form/,
        ],
        [
          `${name}: a check of its health that is not its own`,
          name,
          (service) => void Object.assign(service, { healthcheck: { test: ['CMD', '/bin/node', '-e', 'x'] } }),
          /something else than its image/,
        ],
      ],
    ),
    [
      'a tag before the digest of an image: it is still ours',
      'enclave',
      (service) =>
        void Object.assign(service, {
          image: service.image.replace('@', ':0.1.0@'),
          entrypoint: ['/bin/node', '--import=data:text/javascript,x'],
        }),
      /entrypoint is not provided for/,
    ],
    [
      'an agent of somebody else in place of the guest’s, who would know the root secret',
      'enclave',
      (service) => void service.volumes?.push('./compose.yaml:/var/run/dstack.sock:ro'),
      /\/var\/run\/dstack\.sock is not that of the guest/,
    ],
    [
      'a volume in place of the kernel’s reports',
      'enclave',
      (service) => void service.volumes?.push('backup:/sys/kernel/config'),
      /\/sys\/kernel\/config is not that of the guest/,
    ],
    [
      'the agent that gives out the root secret, for an image of others',
      'kubo',
      (service) => void service.volumes?.push('/var/run/dstack.sock:/tmp/agent'),
      /\/var\/run\/dstack\.sock is not for it/,
    ],
    [
      'a folder of the machine under the name of a volume',
      'kubo',
      (_, all) =>
        void Object.assign(all.volumes ?? {}, { ipfs: { driver_opts: { type: 'none', o: 'bind', device: '/' } } }),
      /ipfs is more than a volume/,
    ],
    [
      'no seccomp',
      'enclave',
      (service) => void service.security_opt?.push('seccomp=unconfined'),
      /seccomp=unconfined is not provided for/,
    ],
    ...Object.entries({
      privileged: true,
      cap_add: ['SYS_PTRACE'],
      pid: 'service:enclave',
      ipc: 'host',
      devices: ['/dev/mem'],
      volumes_from: ['enclave'],
      userns_mode: 'host',
    }).map(([member, value]): [string, string, (service: Service) => void, RegExp] => [
      `${member}, by which an image of others could reach into ours`,
      'kubo',
      (service) => void Object.assign(service, { [member]: value }),
      new RegExp(`${member} is not provided for`),
    ]),
    [
      'a loader’s variable for an image of others',
      'postgres',
      (service) => void Object.assign(service.environment ?? {}, { LD_PRELOAD: '/x' }),
      /LD_PRELOAD decides which code runs/,
    ],
    [
      'another file',
      'web',
      (_, all) => void Object.assign(all, { include: ['x.yaml'] }),
      /include is not provided for/,
    ],
    [
      'waiting for health in vain',
      'worker-1',
      (_, all) => void Reflect.deleteProperty(all.services.kubo ?? {}, 'healthcheck'),
      /never says/,
    ],
    [
      'waiting for the health of one of ours, which migrates for as long as it takes',
      'proxy',
      (service) => void Object.assign(service, { depends_on: { 'coordinator-1': { condition: 'service_healthy' } } }),
      /coordinator-1 may take longer to start/,
    ],
  ])('complained about: %s', (_, name, change, expected) => {
    const broken = structuredClone(compose)
    change(broken.services[name] as Service, broken)
    expect(checkCompose(broken, composeContext).join('\n')).toMatch(expected)
  })
})

describe('the proxy', () => {
  const text = read('deploy/compose/haproxy.cfg')

  test('keeps our own rules', () => {
    expect(checkProxy(text)).toEqual([])
  })

  test.skipIf(HAPROXY === undefined)('HAProxy itself finds no fault in it, nor in the one for PostgreSQL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-haproxy-'))
    try {
      // Whether there is a certificate is no matter of the file.
      const plain = text.replace(' ssl crt /run/secrets/tls.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2', '')
      for (const [name, each] of Object.entries({ plain, postgres: read('deploy/failover/haproxy.cfg') })) {
        writeFileSync(join(folder, name), each)
        execFileSync(HAPROXY ?? '', ['-c', '-q', '-f', join(folder, name)], { env: { APP_HOST: 'app.example' } })
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test.each<[string, string, string, RegExp]>([
    ['the usual log', 'option dontlognull', 'option httplog', /logs queries/],
    ['the request as it came', '%HPO', '%{+Q}r', /logs queries/],
    ['the whole address', '%HPO', '%HU', /logs queries/],
    ['no format', 'log-format', '# log-format', /logs queries/],
    ['a call that stays', 'option redispatch 1', '', /stays with a coordinator/],
    ['no reason told', 'use_backend unready', '# use_backend unready', /nobody says why/],
    ['others asked', 'server coordinator-3 127.0.0.1:8083\n', '', /are others/],
    ['no second try', 'retries 2', 'retries 0', /nothing is tried again/],
    ['a connection that failed', 'conn-failure ', '', /conn-failure/],
    ['a coordinator that died', ' empty-response', '', /empty-response/],
    ['a body that comes later', 'option http-buffer-request', '', /body comes after/],
    ['a code twice', '^/auth/[^/]+/callback$', '^/auth/apple/callback$', /callback\$ is sent twice/],
    ['a message twice', '{ path /sign/message ', '{ path ', /\/sign\/message is sent twice/],
    ['typed data twice', ' /sign/typed-data }', ' }', /\/sign\/typed-data is sent twice/],
    ['what the proxy repeats', 'disable-l7-retry if { fe_name itself }', 'disable-l7-retry if FALSE', /proxy repeats/],
    ['what browsers repeat', 'option http-server-close', '', /clients are asked to repeat/],
    ['a stop without an end', 'hard-stop-after 30s', '', /closes the port/],
    ['a stop that takes long', 'hard-stop-after 30s', 'hard-stop-after 60s', /closes the port/],
    ['a stop that is hasty', 'hard-stop-after 30s', 'hard-stop-after 10s', /cuts signings/],
    ['any number of connections', 'sc0_conn_cur gt', 'sc0_conn_rate gt', /any number of connections/],
    ['connections that nobody counts', 'track-sc0 src', 'accept', /any number of connections/],
    ['connections closed early', 'timeout http-keep-alive 30s\n', 'timeout http-keep-alive 20s\n', /being closed/],
    ['connections closed with requests', 'timeout http-keep-alive 30s\n', '', /being closed/],
    ['what coordinators say of theirs', 'http-after-response set-header Keep-Alive timeout=20\n', '', /being closed/],
    ['an address of the client', 'http-request del-header X-Forwarded-For', '', /where they come from/],
  ])('complained about: %s', (_, old, changed, expected) => {
    expect(text).toContain(old)
    expect(checkProxy(text.replace(old, changed)).join('\n')).toMatch(expected)
  })
})
