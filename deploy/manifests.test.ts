import { describe, expect, test } from 'vitest'
import { findLaunchFaults, imageOf, isDoctor, isPinned, isSecretName } from './test/containers.ts'
import { allOf, compose, containers, documents, dstack, podOf, read } from './test/manifests.ts'

const everyContainer = Object.entries(containers).flatMap(([kind, list]) =>
  list.map((container) => [`${kind}: ${container.where}`, container] as const),
)

test.each(everyContainer)('%s: cannot bypass the launcher of its image', (_, container) => {
  expect(findLaunchFaults(container)).toEqual([])
})

test.each(everyContainer)('%s: has a pinned image, and secrets only in files', (_, container) => {
  expect(isPinned(container.image)).toBe(true)
  expect(Object.keys(container.env).filter(isSecretName)).toEqual([])
})

/**
 * Allowed members of a service. Excludes `entrypoint`, `env_file`, `privileged`, `pid`, `devices` and hooks, which could replace or access
 * our programs.
 */
const COMPOSE_MEMBERS = [
  ...['profiles', 'image', 'command', 'user', 'environment', 'read_only', 'cap_drop', 'security_opt', 'pids_limit'],
  ...['restart', 'logging', 'network_mode', 'depends_on', 'stop_grace_period', 'ports', 'secrets', 'volumes'],
  ...['healthcheck', 'deploy'],
]
/** Interfaces of a confidential guest. Another agent could choose the root secret. */
const GUEST = ['/sys/kernel/config', '/var/run/dstack.sock', '/dstack/.host-shared/.user-config']

const services = Object.entries({ compose, dstack }).flatMap(([kind, { services }]) =>
  Object.entries(services).map(([name, service]) => [`${kind}: ${name}`, service] as const),
)

describe('Compose', () => {
  test.each(services)('%s has minimal rights', (_, service) => {
    const isOurs = imageOf(service) !== undefined
    const known = isOurs ? COMPOSE_MEMBERS : [...COMPOSE_MEMBERS, 'stop_signal', 'tmpfs', 'shm_size']
    expect(Object.keys(service).filter((name) => !known.includes(name))).toEqual([])
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], user: expect.stringMatching(/^\d+:\d+$/) })
    const needsRoot = service.volumes?.includes('/sys/kernel/config:/sys/kernel/config') ?? false
    const options = ['no-new-privileges:true', ...(needsRoot ? ['apparmor=unconfined'] : [])]
    expect(service.security_opt).toEqual(options)
    if (!needsRoot) expect(service.user).not.toMatch(/^0:/)
    expect(service.deploy).toMatchObject({ resources: { limits: { cpus: expect.any(String) } } })
    expect(service.pids_limit).toBeGreaterThan(0)
    if (isOurs) expect((service.healthcheck as { test?: unknown } | undefined)?.test).toBeUndefined()
  })

  test.each(services)('%s mounts only files of this folder and interfaces of the guest, read-only', (_, service) => {
    for (const volume of service.volumes ?? []) {
      const [source = '', target = '', mode] = volume.split(':')
      if (source.startsWith('.')) expect([source.includes('..'), mode]).toEqual([false, 'ro'])
      else if (source.startsWith('/')) expect(GUEST).toContain(source)
      if (GUEST.slice(0, 2).includes(target)) expect(source).toBe(target)
      if (source === '/var/run/dstack.sock') expect(imageOf(service)).toBe('enclave')
    }
  })

  test('volumes have no options, which could mount any folder of the machine', () => {
    for (const { volumes = {} } of [compose, dstack] as { volumes?: object }[])
      expect(Object.values(volumes).filter((volume) => volume !== null)).toEqual([])
  })
})

/** Allowed members of a pod. Excludes `hostPID`, `hostNetwork`, `shareProcessNamespace` and `ephemeralContainers`. */
const POD_MEMBERS = [
  ...['hostname', 'subdomain', 'runtimeClassName', 'restartPolicy', 'automountServiceAccountToken', 'volumes'],
  ...['enableServiceLinks', 'terminationGracePeriodSeconds', 'affinity', 'securityContext', 'initContainers'],
  'containers',
]
/** Excludes `command`, `workingDir` and `envFrom`. */
const CONTAINER_MEMBERS = [
  ...['name', 'image', 'args', 'env', 'ports', 'securityContext', 'lifecycle', 'startupProbe', 'readinessProbe'],
  ...['livenessProbe', 'resources', 'volumeMounts'],
]
/** Excludes `privileged` and custom profiles. */
const SECURITY_MEMBERS = [
  ...['runAsNonRoot', 'runAsUser', 'runAsGroup', 'allowPrivilegeEscalation', 'readOnlyRootFilesystem', 'capabilities'],
]
const KINDS = [
  ...['Namespace', 'ConfigMap', 'PersistentVolumeClaim', 'Pod', 'Deployment', 'StatefulSet', 'Service', 'Ingress'],
  ...['PodDisruptionBudget', 'NetworkPolicy'],
]

const pods = documents.flatMap((document) => {
  const pod = podOf(document)
  return pod === undefined ? [] : [[`${document.kind} ${document.metadata.name}`, pod] as const]
})
const unknownOf = (value: object, known: readonly string[]) =>
  Object.keys(value).filter((name) => !known.includes(name))

describe('Kubernetes', () => {
  test('uses only kinds that these tests check, in our namespaces, without secrets in ConfigMaps', () => {
    for (const { kind, metadata, data = {} } of documents) {
      expect(KINDS).toContain(kind)
      if (kind !== 'Namespace') expect(['countersign', 'countersign-enclave']).toContain(metadata.namespace)
      expect(Object.keys(data).filter(isSecretName)).toEqual([])
    }
  })

  test.each(pods)('%s has minimal rights', (_, pod) => {
    expect(unknownOf(pod, POD_MEMBERS)).toEqual([])
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: expect.any(Number),
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    })
    for (const container of allOf(pod)) {
      const security = { ...(pod.securityContext as object), ...(container.securityContext as object) }
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(container.securityContext).not.toHaveProperty('capabilities.add')
      expect(unknownOf(container.securityContext as object, SECURITY_MEMBERS)).toEqual([])
      const needsRoot = container.volumeMounts?.some(({ mountPath }) => mountPath === '/sys/kernel/config') ?? false
      if (!needsRoot) expect(security).toMatchObject({ runAsNonRoot: true, runAsUser: expect.any(Number) })
      expect(container.resources).toMatchObject({ limits: { memory: expect.any(String) } })
      if (imageOf(container) === undefined) continue
      expect(unknownOf(container, CONTAINER_MEMBERS)).toEqual([])
      expect(JSON.stringify(container)).not.toContain('"exec"')
    }
  })

  test.each(pods)('%s mounts no host folder except the report interface of its guest', (_, pod) => {
    for (const { name, hostPath } of pod.volumes ?? []) {
      if (hostPath === undefined) continue
      // Without a guest, the interface would be the host's.
      expect([hostPath.path, pod.runtimeClassName]).toEqual(['/sys/kernel/config', expect.any(String)])
      const mounts = allOf(pod).flatMap(({ volumeMounts = [] }) => volumeMounts.filter((mount) => mount.name === name))
      expect(mounts.map(({ mountPath }) => mountPath)).toEqual(mounts.map(() => '/sys/kernel/config'))
    }
    const others = (pod.initContainers ?? []).filter((container) => {
      return (
        imageOf(pod.containers[0] ?? container) !== undefined && !isDoctor({ ...container, args: container.args ?? [] })
      )
    })
    expect(others).toEqual([])
  })
})

/** Covers the coordinator's shutdown and a signing. */
test('containers get more time to stop than a signing takes', () => {
  const toSeconds = (text: unknown) => Number(/^(\d+)s$/.exec(String(text))?.[1])
  for (const [name, { stop_grace_period }] of services) expect(toSeconds(stop_grace_period), name).toBeGreaterThan(0)
  const [, stop = ''] = /hard-stop-after (\d+)s/.exec(read('deploy/compose/haproxy.cfg')) ?? []
  expect(Number(stop)).toBeGreaterThanOrEqual(30)
  expect(toSeconds(compose.services.proxy?.stop_grace_period)).toBeGreaterThan(Number(stop))
  for (const name of ['coordinator-1', 'coordinator-2', 'coordinator-3', 'enclave'])
    expect(toSeconds(compose.services[name]?.stop_grace_period), name).toBeGreaterThanOrEqual(30)
})

describe('the proxy', () => {
  const lines = read('deploy/compose/haproxy.cfg')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('#'))

  test("doesn't log queries, which contain sign-in codes", () => {
    expect(lines).not.toContain('option httplog')
    expect(lines.filter((line) => /^log-format .*%(\{[^}]*\})?(r|HU|HQ)\b/.test(line))).toEqual([])
    expect(lines.some((line) => line.startsWith('log-format '))).toBe(true)
  })

  test('ignores client addresses in headers, and limits connections per address', () => {
    expect(lines).toContain('http-request del-header X-Forwarded-For')
    expect(lines).toContain('tcp-request connection track-sc0 src')
    expect(lines.some((line) => /^tcp-request connection reject if \{ sc0_conn_cur gt \d+ \}$/.test(line))).toBe(true)
  })

  test('never repeats a call that must happen once', () => {
    const once = lines.find((line) => line.startsWith('use_backend once if '))
    expect(once).toContain('{ path_beg /sign/ } !{ path /sign/digest /sign/authorization } || ')
    expect(once).toContain(' || { path_reg ^/auth/[^/]+/callback$ }')
    expect(lines).toContain('http-request disable-l7-retry if { fe_name itself }')
  })
})
