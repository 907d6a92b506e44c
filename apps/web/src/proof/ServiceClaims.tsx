import type { ProofPayload, ProofStatus } from '@countersign/protocol'
import { findLies } from '@countersign/verify'
import { ClaimList, toClaims } from '../report/ClaimList.tsx'
import { Fold } from '../ui/Fold.tsx'
import { proofStatusWords } from '../words/proofStatus.ts'
import type { VerificationState } from '../worker/useVerification.ts'

/** Shows the service's claims, last. Opens if a claim is false or the proof is pending. */
export function ServiceClaims(props: { proof: ProofPayload; state: VerificationState; isPolling: boolean }) {
  const { proof, state, isPolling } = props
  const claims = toClaims(state, proof)
  const lies = findLies(claims).length
  // Without a receipt, almost every claim would be unchecked.
  const areClaimsShown = lies > 0 || (claims.length > 0 && state.phase === 'done')
  const { label } = proofStatusWords[proof.status]
  return (
    <Fold
      title="Reported by the service"
      note={lies === 0 ? label : `${label}; some of it is false`}
      isOpen={lies > 0 || proof.status !== 'complete'}
    >
      <PublicationStages status={proof.status} isPolling={isPolling} />
      {areClaimsShown ? <ClaimList claims={claims} /> : null}
    </Fold>
  )
}

const words: Record<StageState, string> = {
  done: 'Done',
  current: 'In progress',
  waiting: 'Waiting',
  failed: 'Failed',
  never: 'Skipped',
}

const paths: Record<StageState, string> = {
  done: 'M9 16.5l5 5L24 11',
  current: 'M16 9v7l5 3',
  waiting: 'M10.5 16h.2M16 16h.2M21.5 16h.2',
  failed: 'M10.5 10.5l11 11M21.5 10.5l-11 11',
  never: 'M10 16h12',
}

const tones: Record<StageState, string> = {
  done: 'tone-good',
  current: 'tone-warning',
  waiting: '',
  failed: 'tone-bad',
  never: '',
}

/** Shows the four stages of publication. */
function PublicationStages({ status, isPolling }: { status: ProofStatus; isPolling: boolean }) {
  const { meaning } = proofStatusWords[status]
  return (
    <section aria-labelledby="life-title">
      <h3 id="life-title">Publication status</h3>
      <ol className="life">
        {toStages(status).map(({ id, title, state, text }) => (
          <li
            key={id}
            className={`life-stage life-stage-${state} ${tones[state]}`}
            data-stage={id}
            data-state={state}
            {...(state === 'current' ? { 'aria-current': 'step' as const } : {})}
          >
            <svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
              <circle cx="16" cy="16" r="14.5" />
              <path d={paths[state]} />
            </svg>
            <div>
              <h4>{title}</h4>
              <p className="life-state">{words[state]}</p>
              <p>{text}</p>
            </div>
          </li>
        ))}
      </ol>
      <p className="fine-print" role="status">
        {meaning}
        {isPolling ? ' This page updates automatically.' : ''}
      </p>
    </section>
  )
}

type StageState = 'done' | 'current' | 'waiting' | 'failed' | 'never'

type Stage = {
  id: 'signed' | 'pinned' | 'published' | 'complete'
  title: string
  state: StageState
  text: string
}

const states: Record<ProofStatus, readonly [StageState, StageState, StageState, StageState]> = {
  pending_pin: ['done', 'current', 'waiting', 'waiting'],
  pending_onchain: ['done', 'done', 'current', 'waiting'],
  complete: ['done', 'done', 'done', 'done'],
  pin_failed: ['done', 'failed', 'never', 'never'],
  onchain_failed: ['done', 'done', 'failed', 'never'],
}

const stages: readonly { id: Stage['id']; title: string; texts: Partial<Record<StageState, string>> }[] = [
  { id: 'signed', title: 'Signed', texts: { done: 'The enclave signed, and its hardware attested the signature.' } },
  {
    id: 'pinned',
    title: 'Pinned to IPFS',
    texts: {
      done: 'The receipt is public under its CID.',
      current: 'The receipt is being pinned.',
      failed: 'Pinning failed. The operator can still export the receipt.',
    },
  },
  {
    id: 'published',
    title: 'Published on chain',
    texts: {
      done: 'The chain points to the receipt.',
      current: 'The receipt is being published and confirmed.',
      failed: 'The receipt couldn’t be published on the chain. You can still verify it.',
    },
  },
  { id: 'complete', title: 'Complete', texts: { done: 'The proof is public.' } },
]

const otherwise: Record<StageState, string> = {
  done: 'Done.',
  current: 'In progress.',
  waiting: 'Not started.',
  failed: 'Failed.',
  never: 'Skipped because an earlier step failed.',
}

export function toStages(status: ProofStatus): Stage[] {
  return stages.map(({ id, title, texts }, index) => {
    const state = states[status][index] ?? 'waiting'
    return { id, title, state, text: texts[state] ?? otherwise[state] }
  })
}
