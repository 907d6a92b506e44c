import type { ProofPayload } from '@countersign/protocol'
import { findLies } from '@countersign/verify'
import { ClaimList } from '../report/ClaimList.tsx'
import { Fold } from '../report/Fold.tsx'
import { toClaims } from '../report/toClaims.ts'
import { proofStatusWords } from '../words/proofStatus.ts'
import type { VerificationState } from '../worker/useVerification.ts'
import { ProofLife } from './ProofLife.tsx'

/** What the service itself says of a proof, after all that was checked. It opens where a claim is false, or something is still to come. */
export function ServiceWord(props: { proof: ProofPayload; state: VerificationState; isPolling: boolean }) {
  const { proof, state, isPolling } = props
  const claims = toClaims(state, proof)
  const lies = findLies(claims).length
  // Without a receipt nearly all is open, which is not worth a list.
  const areClaimsShown = lies > 0 || (claims.length > 0 && state.phase === 'done')
  const { label } = proofStatusWords[proof.status]
  return (
    <Fold
      title="What the service says"
      note={lies === 0 ? label : `${label}; something of it is false`}
      isOpen={lies > 0 || proof.status !== 'complete'}
    >
      <ProofLife status={proof.status} isPolling={isPolling} />
      {areClaimsShown ? <ClaimList claims={claims} /> : null}
    </Fold>
  )
}
