import { checkLaunch, findForeign } from './checkLaunch.ts'
import { CONFIGFS, type Container, imageOf, isDoctor, isPinned, isSecretName, isStandIn } from './containers.ts'
import { CONTAINER_MEMBERS, KINDS, POD_MEMBERS, SECURITY_MEMBERS } from './kubernetesMembers.ts'

/** The members of Kubernetes documents that the rules look at; the validators have looked at the rest. */
export type KubernetesDocument = {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; labels?: Labels }
  data?: Record<string, string>
  spec?: {
    replicas?: number
    serviceName?: string
    selector?: Labels & { matchLabels?: Labels }
    ports?: { name: string; targetPort?: string | number }[]
    template?: { metadata: { labels: Labels }; spec: PodSpec }
    minAvailable?: number
    podSelector?: { matchLabels?: Labels }
    ingress?: { from?: { podSelector?: PodSelector }[] }[]
    rules?: { http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] } }[]
    volumeClaimTemplates?: { metadata: { name: string } }[]
    clusterIP?: string
    publishNotReadyAddresses?: boolean
  } & Partial<PodSpec>
}

type Labels = Record<string, string>
type PodSelector = { matchLabels?: Labels; matchExpressions?: { key: string; values: string[] }[] }
type Probe = {
  httpGet?: { path: string; port: string }
  tcpSocket?: { port: string }
  exec?: unknown
  periodSeconds?: number
  failureThreshold?: number
}

type PodSpec = {
  hostname?: string
  subdomain?: string
  restartPolicy?: string
  automountServiceAccountToken?: boolean
  runtimeClassName?: string
  terminationGracePeriodSeconds?: number
  securityContext?: { runAsNonRoot?: boolean; runAsUser?: number; seccompProfile?: { type: string } }
  initContainers?: PodContainer[]
  containers: PodContainer[]
  volumes?: PodVolume[]
}

type PodVolume = {
  name: string
  hostPath?: { path: string }
  configMap?: { name: string; optional?: boolean }
  secret?: { secretName: string }
  emptyDir?: { sizeLimit?: string }
  persistentVolumeClaim?: { claimName: string }
}

type KeyRef = { name: string; key: string; optional?: boolean }

type PodContainer = {
  name: string
  image: string
  args?: string[]
  env?: { name: string; value?: string; valueFrom?: { configMapKeyRef?: KeyRef } }[]
  envFrom?: unknown[]
  lifecycle?: { preStop?: object }
  ports?: { name: string; containerPort: number }[]
  securityContext?: {
    runAsNonRoot?: boolean
    runAsUser?: number
    allowPrivilegeEscalation?: boolean
    readOnlyRootFilesystem?: boolean
    capabilities?: { drop?: string[]; add?: string[] }
  }
  startupProbe?: Probe
  readinessProbe?: Probe
  livenessProbe?: Probe
  resources?: { requests?: Labels; limits?: Labels }
  volumeMounts?: { name: string; mountPath: string }[]
}

/** What a start may take: one that is ended in a migration begins anew, and never gets further. */
const MIGRATION_S = 43_200

export type KubernetesContext = {
  /** An image with its tag, as kustomize sets it. */
  toImage(name: string): string
  /** Whether one of our programs answers this path. */
  isPath(image: string, path: string): boolean
  /** Secrets and ConfigMaps that the operator makes. */
  givenByOperator: readonly string[]
}

/** Our own rules for Kubernetes documents. One sentence for each fault. */
export function checkKubernetes(documents: readonly KubernetesDocument[], context: KubernetesContext): string[] {
  const names = new Set(documents.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? metadata.name : [])))
  return documents.flatMap((document) => {
    const { kind, metadata } = document
    const faults: string[] = []
    if (!KINDS.includes(kind)) faults.push('its kind is not provided for')
    if (kind !== 'Namespace' && !names.has(metadata.namespace ?? '')) faults.push('its namespace is not ours')
    if (kind === 'Secret') faults.push('secrets are not written down here')
    for (const key of Object.keys(document.data ?? {})) {
      if (isSecretName(key)) faults.push(`${key} is a secret, and belongs into a Secret`)
    }
    if (podOf(document)) faults.push(...checkPod(documents, document, context))
    if (kind === 'Pod') faults.push(...checkCeremony(documents, document))
    if (kind === 'Service') faults.push(...checkService(documents, document))
    if (kind === 'PodDisruptionBudget') faults.push(...checkBudget(documents, document))
    if (kind === 'NetworkPolicy') faults.push(...checkPolicy(documents, document))
    if (kind === 'Ingress') faults.push(...checkIngress(documents, document))
    return faults.map((fault) => `${kind} ${metadata.name}: ${fault}`)
  })
}

function checkPod(
  documents: readonly KubernetesDocument[],
  document: KubernetesDocument,
  context: KubernetesContext,
): string[] {
  const faults: string[] = []
  const { kind, metadata, spec } = document
  const pod = podOf(document)
  if (pod === undefined) return ['it has no pod']
  const labels = spec?.template?.metadata.labels ?? {}
  if (kind !== 'Pod' && !isMatch(spec?.selector?.matchLabels, labels)) {
    faults.push('its selector is not that of its pods')
  }
  faults.push(...findForeign(pod, POD_MEMBERS))
  if (pod.automountServiceAccountToken !== false) faults.push('its pods get a token of the cluster')
  if (pod.securityContext?.seccompProfile?.type !== 'RuntimeDefault') faults.push('its pods have no seccomp profile')
  if (pod.terminationGracePeriodSeconds === undefined) faults.push('it is not said how long it may take to stop')
  if (kind === 'StatefulSet' && find(documents, 'Service', spec?.serviceName, metadata.namespace) === undefined) {
    faults.push(`there is no service ${spec?.serviceName}`)
  }
  for (const { name, hostPath, configMap, secret, persistentVolumeClaim: claim } of pod.volumes ?? []) {
    if (claim && !find(documents, 'PersistentVolumeClaim', claim.claimName, metadata.namespace)) {
      faults.push(`there is no claim ${claim.claimName}`)
    }
    if (hostPath !== undefined && hostPath.path !== CONFIGFS)
      faults.push(`${hostPath.path} of the machine is open to it`)
    if (hostPath !== undefined && pod.runtimeClassName === undefined) faults.push(`${name} would be that of the host`)
    const given = configMap?.name ?? secret?.secretName
    const isHere = configMap && find(documents, 'ConfigMap', configMap.name, metadata.namespace)
    if (given !== undefined && !isHere && !context.givenByOperator.includes(given)) faults.push(`nobody makes ${given}`)
  }
  for (const container of pod.initContainers ?? []) {
    const isOwn = pod.containers.some(({ image }) => image === container.image)
    const args = container.args ?? []
    if (!isOwn || !isDoctor({ image: container.image, args }))
      faults.push('something else than its doctor starts before it')
  }
  const volumes = [...(pod.volumes ?? []), ...(spec?.volumeClaimTemplates ?? []).map((claim) => claim.metadata)]
  for (const container of allOf(pod)) {
    const found = [
      ...checkSecurity(pod, container),
      ...checkContainer(container, context),
      ...(container.volumeMounts ?? []).flatMap(({ name, mountPath }) => {
        const volume: PodVolume | undefined = volumes.find((one) => one.name === name)
        if (volume === undefined) return [`there is no volume ${name}`]
        return isStandIn(mountPath, volume.hostPath?.path) ? [`${mountPath} is not that of the guest`] : []
      }),
      ...(container.env ?? []).flatMap(({ valueFrom }) => {
        const { name, key, optional } = valueFrom?.configMapKeyRef ?? {}
        const isHere = key === undefined || find(documents, 'ConfigMap', name, metadata.namespace)?.data?.[key]
        return isHere || optional ? [] : [`there is no ${key} in ${name}`]
      }),
      ...(container.envFrom ? ['anyone who edits its ConfigMap adds variables to it'] : []),
      ...checkLaunch(toContainer(documents, document, container, context.toImage)),
      ...(imageOf(container) === undefined ? [] : checkStart(container)),
    ]
    faults.push(...found.map((fault) => `${container.name}: ${fault}`))
  }
  return faults
}

/** Nothing but the image starts anything in a container of ours. */
function checkStart(container: PodContainer): string[] {
  const faults = findForeign(container, CONTAINER_MEMBERS)
  const { lifecycle, startupProbe, readinessProbe, livenessProbe } = container
  if (lifecycle && Object.keys({ ...lifecycle, ...lifecycle.preStop }).join() !== 'preStop,sleep') {
    faults.push('a hook runs something in it')
  }
  if ([startupProbe, readinessProbe, livenessProbe].some((probe) => probe?.exec)) faults.push('a probe runs something')
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (value === undefined && valueFrom?.configMapKeyRef === undefined) faults.push(`nobody says what ${name} is`)
  }
  return faults
}

/** An enclave that people start by hand must be found by those that join it, and be ended by nobody but people. */
function checkCeremony(documents: readonly KubernetesDocument[], document: KubernetesDocument): string[] {
  const { metadata, spec } = document
  const container = spec?.containers?.find(({ image }) => image === 'countersign-enclave')
  if (container === undefined) return []
  const faults: string[] = []
  const service = find(documents, 'Service', spec?.subdomain, metadata.namespace)
  const isNamed = service?.spec?.clusterIP === 'None' && isMatch(service.spec.selector as Labels, metadata.labels ?? {})
  if (!isNamed || spec?.hostname === undefined) faults.push('it has no name')
  const url = `https://${spec?.hostname}.${spec?.subdomain}.${metadata.namespace}.svc:8090`
  const join = find(documents, 'ConfigMap', 'enclave', metadata.namespace)?.data?.ROOT_SECRET_FROM ?? ''
  if (!join.replace('join:', '').split(',').includes(url)) faults.push('nobody joins it')
  const isReachable = documents.some(({ kind, metadata: { namespace }, spec: policy }) => {
    const isOurs = kind === 'NetworkPolicy' && namespace === metadata.namespace
    return isOurs && policy?.ingress && isMatch(policy.podSelector?.matchLabels, metadata.labels ?? {})
  })
  if (!isReachable) faults.push('no policy lets anybody in')
  if (spec?.restartPolicy !== 'Never' || container.livenessProbe) faults.push('it is started again without people')
  return faults
}

function checkSecurity(pod: PodSpec, { securityContext, volumeMounts, env }: PodContainer): string[] {
  const faults = findForeign(securityContext ?? {}, SECURITY_MEMBERS)
  if (securityContext?.allowPrivilegeEscalation !== false) faults.push('it may gain privileges')
  if (securityContext?.readOnlyRootFilesystem !== true) faults.push('its root can be written to')
  if (securityContext?.capabilities?.drop?.join() !== 'ALL' || securityContext.capabilities.add) {
    faults.push('it keeps capabilities')
  }
  const user = securityContext?.runAsUser ?? pod.securityContext?.runAsUser
  const isRootNeeded = volumeMounts?.some(({ mountPath }) => mountPath === CONFIGFS) ?? false
  if (user === undefined) faults.push('its user is not a number')
  if (!isRootNeeded && (user === 0 || securityContext?.runAsNonRoot !== true)) faults.push('it may be root')
  for (const { name } of env ?? [])
    if (isSecretName(name)) faults.push(`${name} is a secret, and belongs into a Secret`)
  return faults
}

function checkContainer(container: PodContainer, { toImage, isPath }: KubernetesContext): string[] {
  const faults: string[] = []
  if (!isPinned(toImage(container.image))) faults.push('its image is not pinned')
  for (const kind of ['requests', 'limits'] as const) {
    const { cpu, memory } = container.resources?.[kind] ?? {}
    if (cpu === undefined || memory === undefined) faults.push(`it has no ${kind}`)
  }
  if (imageOf(container) === 'coordinator' && (container.startupProbe ?? container.livenessProbe)) {
    // Where no numbers are said, they are those of Kubernetes.
    const { periodSeconds = 10, failureThreshold = 3 } = container.startupProbe ?? {}
    if (periodSeconds * failureThreshold < MIGRATION_S) faults.push('it may be ended while it migrates the schema')
  }
  const ports = container.ports?.map(({ name }) => name) ?? []
  for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
    const port = probe?.httpGet?.port ?? probe?.tcpSocket?.port
    if (port !== undefined && !ports.includes(port)) faults.push(`it has no port ${port}`)
    if (probe?.httpGet && !isPath(container.image, probe.httpGet.path))
      faults.push(`nobody answers ${probe.httpGet.path}`)
  }
  return faults
}

function checkService(documents: readonly KubernetesDocument[], { metadata, spec }: KubernetesDocument): string[] {
  const wanted = withoutPodName(documents, metadata.namespace, spec?.selector as Labels)
  const pods = podsOf(documents, metadata.namespace).filter(({ labels }) => isMatch(wanted, labels))
  if (pods.length === 0) return ['it selects nothing']
  const containers = pods.flatMap(({ pod }) => pod.containers)
  const names = containers.flatMap(({ ports }) => ports?.map(({ name }) => name) ?? [])
  const isOfEnclaves = spec?.clusterIP === 'None' && containers.some(({ image }) => image === 'countersign-enclave')
  return [
    ...(spec?.ports ?? []).flatMap(({ targetPort }) => {
      return names.includes(String(targetPort)) ? [] : [`nobody has the port ${targetPort}`]
    }),
    ...(isOfEnclaves && !spec?.publishNotReadyAddresses ? ['nobody finds an enclave that stops'] : []),
  ]
}

/** A StatefulSet labels each of its pods with the pod's name; such a selector is one for the labels of the set. */
function withoutPodName(documents: readonly KubernetesDocument[], namespace: string | undefined, wanted: Labels) {
  const { 'statefulset.kubernetes.io/pod-name': podName, ...rest } = wanted
  if (podName === undefined) return wanted
  const set = documents.find(({ kind, metadata, spec }) => {
    const ordinal = podName.startsWith(`${metadata.name}-`)
      ? Number(podName.slice(metadata.name.length + 1))
      : Number.NaN
    return kind === 'StatefulSet' && metadata.namespace === namespace && ordinal < (spec?.replicas ?? 1)
  })
  return set === undefined ? undefined : { ...set.spec?.template?.metadata.labels, ...rest }
}

/** A budget of all or none of the pods would stop every maintenance, or protect nothing. */
function checkBudget(documents: readonly KubernetesDocument[], { metadata, spec }: KubernetesDocument): string[] {
  const pods = podsOf(documents, metadata.namespace).filter(({ labels }) =>
    isMatch(spec?.selector?.matchLabels, labels),
  )
  if (pods.length !== 1) return ['it selects nothing']
  const least = spec?.minAvailable ?? 0
  return least >= 1 && least < (pods[0]?.replicas ?? 1) ? [] : ['it protects nothing, or allows nothing']
}

function checkPolicy(documents: readonly KubernetesDocument[], { metadata, spec }: KubernetesDocument): string[] {
  const wanted = spec?.podSelector?.matchLabels
  if (wanted === undefined) return []
  return podsOf(documents, metadata.namespace).some(({ labels }) => isMatch(wanted, labels))
    ? []
    : ['it selects nothing']
}

function checkIngress(documents: readonly KubernetesDocument[], { metadata, spec }: KubernetesDocument): string[] {
  return (spec?.rules ?? []).flatMap(({ http }) =>
    http.paths.flatMap(({ backend: { service } }) => {
      const found = find(documents, 'Service', service.name, metadata.namespace)
      return found?.spec?.ports?.some(({ name }) => name === service.port.name)
        ? []
        : [`there is no service ${service.name}`]
    }),
  )
}

/** The names of the pods that may speak to those of a name, by the policies. */
export function callersOf(documents: readonly KubernetesDocument[], name: string): string[] {
  const policy = documents.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === name)
  const selectors = (policy?.spec?.ingress ?? []).flatMap(({ from }) => from ?? [{}])
  return selectors.flatMap(({ podSelector }) => {
    const byLabel = podSelector?.matchLabels?.['app.kubernetes.io/name']
    const byExpression = podSelector?.matchExpressions?.flatMap(({ values }) => values) ?? []
    return [...(byLabel === undefined ? [] : [byLabel]), ...byExpression, ...(podSelector ? [] : ['anybody'])]
  })
}

export function toContainers(
  documents: readonly KubernetesDocument[],
  toImage: KubernetesContext['toImage'],
): Container[] {
  return documents.flatMap((document) =>
    allOf(podOf(document)).map((container) => toContainer(documents, document, container, toImage)),
  )
}

function toContainer(
  documents: readonly KubernetesDocument[],
  { kind, metadata }: KubernetesDocument,
  container: PodContainer,
  toImage: KubernetesContext['toImage'],
): Container {
  const env = (container.env ?? []).map(({ name, value, valueFrom }) => {
    const { name: map, key = '' } = valueFrom?.configMapKeyRef ?? {}
    return [name, value ?? find(documents, 'ConfigMap', map, metadata.namespace)?.data?.[key] ?? ''] as const
  })
  return {
    where: `${kind} ${metadata.name}/${container.name}`,
    image: toImage(container.image),
    args: container.args ?? [],
    env: Object.fromEntries(env),
    mounts: (container.volumeMounts ?? []).map(({ mountPath }) => mountPath),
  }
}

/** Those that come before the others, and the others. */
function allOf(pod: PodSpec | undefined): PodContainer[] {
  return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]
}

/** What a document runs: a template of pods, or one pod. */
function podOf({ kind, spec }: KubernetesDocument): PodSpec | undefined {
  return kind === 'Pod' ? (spec as PodSpec) : spec?.template?.spec
}

function podsOf(documents: readonly KubernetesDocument[], namespace: string | undefined) {
  return documents.flatMap((document) => {
    const { metadata, spec } = document
    const pod = podOf(document)
    if (pod === undefined || metadata.namespace !== namespace) return []
    return [{ labels: spec?.template?.metadata.labels ?? metadata.labels ?? {}, pod, replicas: spec?.replicas ?? 1 }]
  })
}

function isMatch(wanted: Labels | undefined, labels: Labels): boolean {
  const entries = Object.entries(wanted ?? {})
  return entries.length > 0 && entries.every(([key, value]) => labels[key] === value)
}

function find(
  documents: readonly KubernetesDocument[],
  kind: string,
  name: string | undefined,
  namespace: string | undefined,
) {
  return documents.find((document) => {
    return document.kind === kind && document.metadata.name === name && document.metadata.namespace === namespace
  })
}
