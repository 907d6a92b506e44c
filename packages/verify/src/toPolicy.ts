import type { TcbStatus } from '@countersign/attestation'
import { type CheckReceiptOptions, DEFAULT_MAXIMUM_EVENT_DELAY_S } from '@countersign/receipt'
import { type Manifest, type MinimumTcb, SNP_PRODUCTS, SNP_TCB_PARTS } from './parseManifest.ts'

/**
 * In which state hardware is accepted, and how late an event. Unlike anchors, which add up, these are limits: of several
 * manifests the strictest decides, or one of them could undo what another demands.
 */
export function toPolicy(
  {
    statuses,
    maximumEventDelayS = DEFAULT_MAXIMUM_EVENT_DELAY_S,
  }: { statuses: readonly TcbStatus[]; maximumEventDelayS?: number | undefined },
  manifests: readonly Manifest[],
): NonNullable<CheckReceiptOptions['policy']> {
  const numbers = manifests.flatMap(({ enclave }) => enclave.minimumTcbEvaluationDataNumber ?? [])
  const minimumTcbs = manifests.flatMap(({ coordinator }) => coordinator.minimumTcb ?? [])
  const delays = manifests.flatMap((manifest) => manifest.maximumEventDelayS ?? [])
  return {
    signer: {
      statuses: ['UpToDate', ...statuses],
      ...(numbers.length === 0 ? {} : { minimumTcbEvaluationDataNumber: Math.max(...numbers) }),
    },
    coordinator: minimumTcbs.length === 0 ? {} : { minimumTcb: mergeMinimumTcbs(minimumTcbs) },
    time: { maximumEventDelayS: Math.min(maximumEventDelayS, ...delays) },
  }
}

/** The highest of each part. A product that one of them leaves out is refused by it, so it stays left out. */
function mergeMinimumTcbs(minimums: readonly MinimumTcb[]): MinimumTcb {
  const accepted = SNP_PRODUCTS.filter((product) => minimums.every((minimum) => minimum[product] !== undefined))
  return Object.fromEntries(
    accepted.map((product) => {
      const highest = (part: (typeof SNP_TCB_PARTS)[number]) =>
        Math.max(0, ...minimums.map((minimum) => minimum[product]?.[part] ?? 0))
      return [product, Object.fromEntries(SNP_TCB_PARTS.map((part) => [part, highest(part)]))]
    }),
  )
}
