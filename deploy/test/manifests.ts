import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import type { Container } from './containers.ts'

/** All manifests of this folder and their containers. */

type ComposeService = {
  image: string
  user?: string
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  volumes?: string[]
  [member: string]: unknown
}

export type Compose = { services: Record<string, ComposeService>; [member: string]: unknown }

type Labels = Record<string, string>
type PodSelector = { matchLabels?: Labels; matchExpressions?: { key: string; values: string[] }[] }

export type PodContainer = {
  name: string
  image: string
  args?: string[]
  env?: { name: string; value?: string; valueFrom?: { configMapKeyRef?: { name: string; key: string } } }[]
  ports?: { name: string; containerPort: number }[]
  volumeMounts?: { name: string; mountPath: string }[]
  [member: string]: unknown
}

export type PodSpec = {
  initContainers?: PodContainer[]
  containers: PodContainer[]
  volumes?: { name: string; hostPath?: { path: string } }[]
  [member: string]: unknown
}

export type KubernetesDocument = {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; labels?: Labels }
  data?: Record<string, string>
  spec?: {
    replicas?: number
    template?: { metadata: { labels: Labels }; spec: PodSpec }
    ingress?: { from?: { podSelector?: PodSelector }[] }[]
  } & Partial<PodSpec>
}

const root = join(import.meta.dirname, '../..')
export const read = (path: string) => readFileSync(join(root, path), 'utf8')

export const startExample = parseEnv(read('deploy/compose/start.env.example'))
export const envExample = { ...parseEnv(read('deploy/compose.env.example')), ...startExample }
export const composeTemplate: unknown = parse(read('deploy/compose.yaml'), { merge: true })
export const compose = interpolate(composeTemplate, envExample) as Compose

export const dstackText = read('deploy/dstack/docker-compose.yaml')
export const dstack = parse(dstackText) as Compose

const yamlIn = (folder: string) =>
  readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
export const kubernetesFiles = yamlIn('deploy/kubernetes')
export const ceremonyFiles = yamlIn('deploy/kubernetes/ceremony')
type Kustomization = { resources: string[]; images: { name: string; newTag: string }[] }
export const kustomization = parse(read('deploy/kubernetes/kustomization.yaml')) as Kustomization
export const ceremony = parse(read('deploy/kubernetes/ceremony/kustomization.yaml')) as Kustomization
export const documents = [...kubernetesFiles, ...ceremonyFiles.map((name) => `ceremony/${name}`)].flatMap((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}`)).map((document) => {
    if (document.errors.length > 0) throw new Error(`${name}: ${document.errors.join()}`)
    return document.toJS() as KubernetesDocument
  }),
)

export const containers: Record<string, Container[]> = {
  compose: toContainers(compose),
  kubernetes: documents.flatMap((document) =>
    allOf(podOf(document)).map((container) => toKubernetesContainer(document, container)),
  ),
  dstack: toContainers(dstack),
}

/** Interpolates a parsed file like Compose: `${NAME}`, `${NAME:?}` and `${NAME:-default}`. */
export function interpolate(value: unknown, env: Readonly<Record<string, string | undefined>>): unknown {
  if (Array.isArray(value)) return value.map((item) => interpolate(item, env))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, interpolate(member, env)]))
  }
  if (typeof value !== 'string') return value
  return value.replace(
    /\$\{(\w+)(?::([?-])([^}]*))?\}/g,
    (_, name: string, kind: string | undefined, fallback: string) => {
      const given = env[name]
      if (given !== undefined && given !== '') return given
      if (kind === '-') return fallback
      throw new Error(`${name} is not set`)
    },
  )
}

export function toContainers({ services }: Compose): Container[] {
  return Object.entries(services).map(([where, service]) => ({
    where,
    image: service.image,
    args: service.command ?? [],
    env: service.environment ?? {},
    mounts: [
      ...(service.secrets ?? []).map((secret) => `/run/secrets/${secret}`),
      ...(service.volumes ?? []).map((volume) => volume.split(':')[1] ?? ''),
    ],
  }))
}

/** The pod that a document runs, from a template or directly. */
export function podOf({ kind, spec }: KubernetesDocument): PodSpec | undefined {
  return kind === 'Pod' ? (spec as PodSpec) : spec?.template?.spec
}

/** Init containers and others. */
export function allOf(pod: PodSpec | undefined): PodContainer[] {
  return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]
}

function toKubernetesContainer({ kind, metadata }: KubernetesDocument, container: PodContainer): Container {
  const findData = (map: string | undefined) =>
    documents.find(
      (one) => one.kind === 'ConfigMap' && one.metadata.name === map && one.metadata.namespace === metadata.namespace,
    )?.data
  const env = (container.env ?? []).map(({ name, value, valueFrom }) => {
    const { name: map, key = '' } = valueFrom?.configMapKeyRef ?? {}
    return [name, value ?? findData(map)?.[key] ?? ''] as const
  })
  const tag = kustomization.images.find((image) => image.name === container.image)?.newTag
  return {
    where: `${kind} ${metadata.name}/${container.name}`,
    image: tag === undefined ? container.image : `${container.image}:${tag}`,
    args: container.args ?? [],
    env: Object.fromEntries(env),
    mounts: (container.volumeMounts ?? []).map(({ mountPath }) => mountPath),
  }
}

/** Callers that a network policy admits. */
export function callersOf(name: string): string[] {
  const policy = documents.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === name)
  const selectors = (policy?.spec?.ingress ?? []).flatMap(({ from }) => from ?? [{}])
  return selectors.flatMap(({ podSelector }) => {
    const byLabel = podSelector?.matchLabels?.['app.kubernetes.io/name']
    const byExpression = podSelector?.matchExpressions?.flatMap(({ values }) => values) ?? []
    return [...(byLabel === undefined ? [] : [byLabel]), ...byExpression, ...(podSelector ? [] : ['anyone'])]
  })
}
