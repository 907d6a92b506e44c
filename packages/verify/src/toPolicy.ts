import type { TcbStatus } from '@countersign/attestation'
import type { CheckReceiptOptions } from '@countersign/receipt'
import type { Manifest } from './parseManifest.ts'

/**
 * In which state the enclave's hardware is accepted. Unlike anchors, which add up, these are floors: of several manifests the
 * strictest decides, or one of them could undo what another demands.
 */
export function toPolicy(
  { statuses }: { statuses: readonly TcbStatus[] },
  manifests: readonly Manifest[],
): NonNullable<CheckReceiptOptions['policy']> {
  const numbers = manifests.flatMap(({ enclave }) => enclave.minimumTcbEvaluationDataNumber ?? [])
  return {
    signer: {
      statuses: ['UpToDate', ...statuses],
      ...(numbers.length === 0 ? {} : { minimumTcbEvaluationDataNumber: Math.max(...numbers) }),
    },
  }
}
