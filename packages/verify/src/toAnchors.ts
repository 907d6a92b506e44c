import type { Anchors } from '@countersign/receipt'
import type { Manifest } from './parseManifest.ts'

/** Everything that the reader trusts, but for the contract, which depends on the chain. Manifests add up. */
export function toAnchors(manifests: readonly Manifest[]): Omit<Anchors, 'contract'> {
  const all = <Item>(select: (manifest: Manifest) => readonly Item[]) => manifests.flatMap(select)
  const events = mergeEvents(manifests)
  return {
    measurements: all(({ enclave }) => enclave.measurements),
    ...(events === undefined ? {} : { events }),
    platforms: all(({ enclave }) => enclave.platforms ?? []),
    configHashes: all(({ enclave }) => enclave.configHashes),
    coordinatorMeasurements: all(({ coordinator }) => coordinator.measurements),
    coordinatorConfigHashes: all(({ coordinator }) => coordinator.configHashes),
    entropyKeys: all(({ entropyKeys }) => entropyKeys),
  }
}

function mergeEvents(manifests: readonly Manifest[]): Anchors['events'] {
  const merged = new Map<string, string[]>()
  for (const { enclave } of manifests) {
    for (const [name, payloads] of Object.entries(enclave.events ?? {})) {
      merged.set(name, [...(merged.get(name) ?? []), ...payloads])
    }
  }
  return merged.size === 0 ? undefined : Object.fromEntries(merged)
}
