import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { findFreePorts } from '@countersign/testing'
import * as kubernetes from 'kubernetes-models'
import { describe, expect, test } from 'vitest'
import { launchedBy } from './launcher/launchers.ts'
import { callersOf, checkKubernetes, type KubernetesDocument } from './rules/checkKubernetes.ts'
import type { Container } from './rules/containers.ts'
import {
  ceremony,
  ceremonyFiles,
  containers,
  documents,
  kubernetesContext,
  kubernetesFiles,
  kustomization,
  read,
} from './test/manifests.ts'
import { type EnclaveConfig, readContainerConfig } from './test/readContainerConfig.ts'

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

  test('are applied as they are: a kustomization patches nothing and generates nothing', () => {
    for (const one of [kustomization, ceremony]) {
      expect(Object.keys(one)).toEqual(['apiVersion', 'kind', 'resources', 'images'])
      for (const image of one.images) expect(Object.keys(image)).toEqual(['name', 'newTag'])
    }
  })

  test('a ceremony is a genesis or a recovery with the configuration of those that serve', () => {
    const find = (where: string) => containers.kubernetes?.find((one) => one.where === where) as Container
    const serving = readContainerConfig(find('StatefulSet enclave/enclave')) as EnclaveConfig
    const pod = find('Pod enclave-ceremony/enclave')
    const backup = '/run/root-backup/root-backup.json'
    const recover = { ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: backup }
    const renewed = { ...recover, ROOT_SECRET_NEW_BACKUP_FILE: '/backup/new-root-backup.json' }
    for (const [kind, env] of Object.entries({ genesis: {}, recover, renewed })) {
      const config = readContainerConfig({ ...pod, env: { ...pod.env, ...env } }) as EnclaveConfig
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
      expect(read('docs/operations.md')).toMatch(new RegExp(`(secret generic|configmap) ${name} `))
  })

  test('metrics on loopback are handed on by the sidecar', async () => {
    const [sidecar, ...others] = containers.kubernetes?.filter(({ where }) => where.endsWith('/metrics')) ?? []
    expect(others.map(({ args }) => args)).toEqual([sidecar?.args])
    const upstream = createServer((_, response) => void response.end('signings 1\n'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const [from, [to = 0]] = [(upstream.address() as { port: number }).port, await findFreePorts(1)]
    const [script = '', ...ports] = launchedBy('coordinator', sidecar?.args[0])?.args ?? []
    expect(ports).toEqual(['9464', '9465'])
    const child = spawn(process.execPath, [script, String(from), String(to)], { stdio: 'ignore' })
    try {
      const ask = () =>
        fetch(`http://127.0.0.1:${to}/metrics`).then(
          (response) => response.text(),
          () => '',
        )
      await expect.poll(ask).toBe('signings 1\n')
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
      (all) => Object.assign(named(all, 'ConfigMap', 'enclave').data ?? {}, { DATABASE_URL: 'x' }),
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
      'a start that ends a long migration',
      (all) => Object.assign(firstOf(all, 'coordinator').startupProbe ?? {}, { failureThreshold: 60 }),
      /ended while it migrates/,
    ],
    [
      'no start before it has to be alive',
      (all) => Reflect.deleteProperty(firstOf(all, 'coordinator'), 'startupProbe'),
      /ended while it migrates/,
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
      (all) => Object.assign(named(all, 'ConfigMap', 'enclave').metadata, { name: 'gone' }),
      /there is no LISTEN in enclave/,
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
      'an enclave that has no name while it stops',
      (all) => Object.assign(named(all, 'Service', 'enclave').spec ?? {}, { publishNotReadyAddresses: false }),
      /nobody finds an enclave that stops/,
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
    ...['enclave', 'coordinator', 'worker', 'web', 'postgres'].map(
      (name): [string, (all: KubernetesDocument[]) => unknown, RegExp] => [
        `${name}: a whole ConfigMap`,
        (all) => Object.assign(firstOf(all, name), { envFrom: [{ configMapRef: { name: 'web' } }] }),
        /anyone who edits its ConfigMap/,
      ],
    ),
    ...['enclave', 'coordinator', 'worker', 'web'].flatMap(
      (name): [string, (all: KubernetesDocument[]) => unknown, RegExp][] => [
        [
          `${name}: another command`,
          (all) => Object.assign(firstOf(all, name), { command: ['/bin/node'] }),
          /command is not provided for/,
        ],
        [
          `${name}: a file of variables`,
          (all) => Object.assign(firstOf(all, name), { args: ['--env-file=/run/x', 'main.ts'] }),
          /--env-file=\/run\/x is no program/,
        ],
        [
          `${name}: another working directory`,
          (all) => Object.assign(firstOf(all, name), { workingDir: '/run' }),
          /workingDir is not provided for/,
        ],
        [
          `${name}: NODE_OPTIONS`,
          (all) => firstOf(all, name).env?.push({ name: 'NODE_OPTIONS', value: '--import=data:x' }),
          /NODE_OPTIONS does not get through/,
        ],
        [
          `${name}: a value from a Secret`,
          (all) => firstOf(all, name).env?.push({ name: 'HOST', valueFrom: {} }),
          /nobody says what HOST is/,
        ],
        [
          `${name}: something over its code`,
          (all) => firstOf(all, name).volumeMounts?.push({ name: 'x', mountPath: '/app/node_modules/x' }),
          /covers what was measured/,
        ],
        [
          `${name}: something over its code, the long way round`,
          (all) => firstOf(all, name).volumeMounts?.push({ name: 'x', mountPath: '/run/../app' }),
          /covers what was measured/,
        ],
        [
          `${name}: a tag and a digest: it is still ours`,
          (all) =>
            Object.assign(firstOf(all, name), {
              image: `registry.example.com/${firstOf(all, name).image}:0.1.0@sha256:${'0'.repeat(64)}`,
              command: ['/bin/node'],
            }),
          /command is not provided for/,
        ],
        ...['hostPID', 'hostIPC', 'hostNetwork', 'shareProcessNamespace', 'ephemeralContainers'].map(
          (member): [string, (all: KubernetesDocument[]) => unknown, RegExp] => [
            `${name}: ${member}`,
            (all) => Object.assign(podOf(all, name), { [member]: true }),
            new RegExp(`${member} is not provided for`),
          ],
        ),
        ...['privileged', 'procMount', 'seccompProfile', 'appArmorProfile'].map(
          (member): [string, (all: KubernetesDocument[]) => unknown, RegExp] => [
            `${name}: ${member} of its own`,
            (all) => Object.assign(firstOf(all, name).securityContext ?? {}, { [member]: true }),
            new RegExp(`${member} is not provided for`),
          ],
        ),
        [
          `${name}: a probe that runs something`,
          (all) => Object.assign(firstOf(all, name), { readinessProbe: { exec: { command: ['x'] } } }),
          /a probe runs something/,
        ],
        [
          `${name}: a hook that runs something`,
          (all) => Object.assign(firstOf(all, name), { lifecycle: { postStart: { exec: { command: ['x'] } } } }),
          /a hook runs something/,
        ],
        [
          `${name}: one that starts before it`,
          (all) => Object.assign(podOf(all, name), { initContainers: [{ name: 'x', image: 'busybox:1.37.0' }] }),
          /something else than its doctor starts before it/,
        ],
        [
          `${name}: a program of its own that starts before it`,
          (all) => Object.assign(podOf(all, name), { initContainers: [{ ...firstOf(all, name), args: ['admin'] }] }),
          /something else than its doctor starts before it/,
        ],
      ],
    ),
    [
      'a volume in place of the kernel’s reports',
      (all) => {
        const { volumes } = podOf(all, 'enclave')
        const own = volumes?.find(({ hostPath }) => hostPath !== undefined)
        Reflect.deleteProperty(own ?? {}, 'hostPath')
        Object.assign(own ?? {}, { emptyDir: {} })
        const mount = firstOf(all, 'enclave').volumeMounts?.find(({ name }) => name === own?.name)
        Object.assign(mount ?? {}, { mountPath: '/sys/kernel/../kernel/config' })
      },
      /kernel\/config is not that of the guest/,
    ],
    [
      'an agent of somebody else, who would know the root secret',
      (all) => {
        podOf(all, 'enclave').volumes?.push({ name: 'agent', emptyDir: {} })
        firstOf(all, 'enclave').volumeMounts?.push({ name: 'agent', mountPath: '/var/run/dstack.sock' })
      },
      /dstack\.sock is not that of the guest/,
    ],
    [
      'a kind that no rule looks into',
      (all) =>
        all.push({
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          metadata: { name: 'x', namespace: 'countersign-enclave' },
          spec: {
            jobTemplate: { spec: { template: structuredClone(named(all, 'StatefulSet', 'enclave').spec?.template) } },
          },
        } as unknown as KubernetesDocument),
      /CronJob x: its kind is not provided for/,
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
