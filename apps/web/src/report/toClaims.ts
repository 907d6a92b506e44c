import type { ProofPayload } from '@countersign/protocol'
import { type Claim, compareClaims } from '@countersign/verify'
import type { VerificationState } from '../worker/useVerification.ts'

/**
 * What the service says, held against what was found. Of the latest answer, which may have changed since the verification began.
 * Where there is no receipt, it can still contradict itself.
 */
export function toClaims(state: VerificationState, proof: ProofPayload | undefined): readonly Claim[] {
  if (proof === undefined || state.phase === 'running') return []
  return compareClaims(proof, state.phase === 'done' ? state.outcome : undefined)
}
