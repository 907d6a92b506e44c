import type { TdMeasurement } from '@countersign/attestation'
import type { Anchors } from '@countersign/receipt'
import type { Manifest } from './parseManifest.ts'

/** The anchors that come as options; each adds to what the manifests list. */
export type AnchorOptions = {
  measurements: readonly string[]
  configHashes: readonly string[]
  coordinatorMeasurements: readonly string[]
  coordinatorConfigHashes: readonly string[]
  entropyKeys: readonly string[]
}

/** Everything that the reader trusts, but for the contract, which depends on the chain. */
export function toAnchors(options: AnchorOptions, manifests: readonly Manifest[]): Omit<Anchors, 'contract'> {
  const all = <Item>(select: (manifest: Manifest) => readonly Item[]) => manifests.flatMap(select)
  const given: TdMeasurement[] = options.measurements.map((mrTd) => ({ mrTd }))
  const events = mergeEvents(manifests)
  return {
    measurements: [...all(({ enclave }) => enclave.measurements), ...given],
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

/**
 * Registers that no matching measurement speaks of. MRTD alone covers the firmware that a TD starts with; what it loads
 * afterwards is in RTMR0 to RTMR3, so a reader must know when those were left open.
 */
export function findOpenRegisters(
  measured: Required<Pick<TdMeasurement, 'mrTd' | 'rtmr0' | 'rtmr1' | 'rtmr2' | 'rtmr3'>>,
  anchors: Anchors,
): string[] {
  const registers = ['rtmr0', 'rtmr1', 'rtmr2', 'rtmr3'] as const
  const open = (anchors.measurements ?? [])
    .filter(({ mrTd }) => mrTd === measured.mrTd)
    .filter((trusted) => registers.every((name) => trusted[name] === undefined || trusted[name] === measured[name]))
    .map((trusted) => registers.filter((name) => trusted[name] === undefined))
    .map((names) => names.filter((name) => name !== 'rtmr3' || anchors.events === undefined))
  const fewest = open.toSorted((left, right) => left.length - right.length)[0] ?? []
  return fewest.map((name) => name.toUpperCase())
}
