import type { KubernetesDocument } from '../rules/checkKubernetes.ts'

type Members = { [name: string]: unknown }

/** By what Kubernetes finds an item of a list again. Other lists are replaced as a whole. */
const KEYS: Readonly<Record<string, string>> = {
  initContainers: 'name',
  containers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
}

/** Ports of a container and of a service are found by different members. */
const keyOf = (list: string, item: Members) =>
  list === 'ports' ? ('containerPort' in item ? 'containerPort' : 'port') : KEYS[list]

/** What `kubectl kustomize` makes of documents and strategic merge patches, as far as our overlays use them. */
export function applyPatches(
  documents: readonly KubernetesDocument[],
  patches: readonly KubernetesDocument[],
): KubernetesDocument[] {
  return documents.flatMap((document) => {
    const own = patches.filter((patch) => isSame(patch, document)) as Members[]
    if (own.some(isDeletion)) return []
    return own.reduce<Members>(merge, document) as KubernetesDocument
  })
}

function isSame(one: KubernetesDocument, other: KubernetesDocument): boolean {
  const { name, namespace } = one.metadata
  return one.kind === other.kind && name === other.metadata.name && namespace === other.metadata.namespace
}

function merge(base: Members, patch: Members): Members {
  const merged: Members = { ...base }
  for (const [name, value] of Object.entries(patch)) {
    const earlier = merged[name]
    if (value === null) delete merged[name]
    else if (Array.isArray(value)) merged[name] = mergeList(name, Array.isArray(earlier) ? earlier : [], value)
    else merged[name] = isMembers(earlier) && isMembers(value) ? merge(earlier, value) : value
  }
  return merged
}

function mergeList(list: string, base: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged = [...base] as Members[]
  for (const item of patch as readonly Members[]) {
    const key = isMembers(item) ? keyOf(list, item) : undefined
    if (key === undefined) return [...patch]
    const at = merged.findIndex((one) => one[key] === item[key])
    const earlier = merged[at]
    // A deletion of what is not there is a mistake of ours.
    if (isDeletion(item)) {
      if (earlier === undefined) throw new Error(`there is no ${String(item[key])} in ${list} to delete`)
      merged.splice(at, 1)
    } else if (earlier === undefined) merged.push(item)
    else merged[at] = merge(earlier, item)
  }
  return merged
}

function isDeletion(value: Members): boolean {
  return value.$patch === 'delete'
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
