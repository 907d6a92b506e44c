import type { TcbStatus } from '@countersign/attestation'
import { type CheckReceiptOptions, DEFAULT_MAXIMUM_EVENT_DELAY_S } from '@countersign/receipt'
import type { Manifest } from './parseManifest.ts'

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
  const delays = manifests.flatMap((manifest) => manifest.maximumEventDelayS ?? [])
  return {
    signer: {
      statuses: ['UpToDate', ...statuses],
      ...(numbers.length === 0 ? {} : { minimumTcbEvaluationDataNumber: Math.max(...numbers) }),
    },
    time: { maximumEventDelayS: Math.min(maximumEventDelayS, ...delays) },
  }
}
