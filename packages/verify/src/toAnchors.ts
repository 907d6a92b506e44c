import type { TdMeasurement } from '@countersign/attestation'
import type { Anchors } from '@countersign/receipt'
import type { Manifest } from './parseManifest.ts'

/** The anchors that come as options; each adds to what the manifests list. */
export type AnchorOptions = {
  measurements: readonly TdMeasurement[]
  configHashes: readonly string[]
  coordinatorMeasurements: readonly string[]
  coordinatorConfigHashes: readonly string[]
  entropyKeys: readonly string[]
}

/** Everything that the reader trusts, but for the contract, which depends on the chain. */
export function toAnchors(options: AnchorOptions, manifests: readonly Manifest[]): Omit<Anchors, 'contract'> {
  const all = <Item>(select: (manifest: Manifest) => readonly Item[]) => manifests.flatMap(select)
  const events = mergeEvents(manifests)
  return {
    measurements: [...all(({ enclave }) => enclave.measurements), ...options.measurements],
    ...(events === undefined ? {} : { events }),
    configHashes: [...all(({ enclave }) => enclave.configHashes), ...options.configHashes],
    coordinatorMeasurements: [
      ...all(({ coordinator }) => coordinator.measurements),
      ...options.coordinatorMeasurements,
    ],
    coordinatorConfigHashes: [
      ...all(({ coordinator }) => coordinator.configHashes),
      ...options.coordinatorConfigHashes,
    ],
    entropyKeys: [...all(({ entropyKeys }) => entropyKeys), ...options.entropyKeys],
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
