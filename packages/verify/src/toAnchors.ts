import { type SnpTcb, snpProducts, snpTcbParts, type TcbStatus } from '@countersign/attestation'
import { type Anchors, type CheckReceiptOptions, DEFAULT_MAXIMUM_EVENT_DELAY_S } from '@countersign/receipt'
import type { Manifest, MinimumTcb } from './parseManifest.ts'

/**
 * Merges manifests, except their contracts, which depend on the chain. Lists of trusted values are joined. Of minimum versions the highest
 * counts, and each manifest's witnesses are required.
 */
export function toAnchors(manifests: readonly Manifest[]): Omit<Anchors, 'contract'> {
  const all = <Item>(select: (manifest: Manifest) => readonly Item[]) => manifests.flatMap(select)
  const events = mergeEvents(manifests)
  const minimumTcbs = manifests.flatMap(({ coordinator }) => coordinator.minimumTcb ?? [])
  return {
    measurements: all(({ enclave }) => enclave.measurements),
    ...(events === undefined ? {} : { events }),
    platforms: all(({ enclave }) => enclave.platforms ?? []),
    configHashes: all(({ enclave }) => enclave.configHashes),
    coordinatorMeasurements: all(({ coordinator }) => coordinator.measurements),
    ...(minimumTcbs.length === 0 ? {} : { coordinatorMinimumTcb: mergeMinimumTcbs(minimumTcbs) }),
    coordinatorChips: all(({ coordinator }) => coordinator.chips ?? []),
    coordinatorConfigHashes: all(({ coordinator }) => coordinator.configHashes),
    entropyKeys: all(({ entropyKeys }) => entropyKeys),
    logWitnesses: all(({ log }) => (log === undefined ? [] : [log])),
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

/** The highest of each part. A product that one manifest omits stays rejected. */
function mergeMinimumTcbs(minimums: readonly MinimumTcb[]): MinimumTcb {
  const accepted = snpProducts.filter((product) => minimums.every((minimum) => minimum[product] !== undefined))
  return Object.fromEntries(
    accepted.map((product) => {
      const highest = (part: keyof SnpTcb) => Math.max(0, ...minimums.map((minimum) => minimum[product]?.[part] ?? 0))
      return [product, Object.fromEntries(snpTcbParts.map((part) => [part, highest(part)]))]
    }),
  )
}

/** Limits for the state of hardware and the delay of an event. Of several manifests, the strictest limit counts. */
export function toPolicy(
  {
    statuses,
    maximumEventDelayS = DEFAULT_MAXIMUM_EVENT_DELAY_S,
  }: { statuses: readonly TcbStatus[]; maximumEventDelayS?: number | undefined },
  manifests: readonly Manifest[],
): NonNullable<CheckReceiptOptions['policy']> {
  const numbers = manifests.flatMap(({ enclave }) => enclave.minimumTcbEvaluationDataNumber ?? [])
  const delays = manifests.flatMap((manifest) => manifest.maximumEventDelayS ?? [])
  return {
    signer: {
      statuses: ['UpToDate', ...statuses],
      ...(numbers.length === 0 ? {} : { minimumTcbEvaluationDataNumber: Math.max(...numbers) }),
    },
    time: { maximumEventDelayS: Math.min(maximumEventDelayS, ...delays) },
  }
}
