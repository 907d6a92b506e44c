import type { ProofPayload, ServiceError } from '@countersign/protocol'
import { ATTESTATION_V2 } from '@countersign/receipt'
import {
  type Claim,
  compareClaims,
  describeError,
  describeSigned,
  describeVerdict,
  findLies,
  type Outcome,
  type Phase,
  toPrintable,
  type VerdictContext,
} from '@countersign/verify'
import { type ReactNode, useMemo } from 'react'
import type { Anchors } from '../anchors/useAnchors.ts'
import { Notice } from '../ui/Notice.tsx'
import type { VerificationState } from '../worker/useVerification.ts'
import { ClaimList } from './ClaimList.tsx'
import { DownloadLink } from './DownloadLink.tsx'
import { toFailureWords } from './failureWords.ts'
import { RunningSteps } from './RunningSteps.tsx'
import { type Mark, StatusMark } from './StatusMark.tsx'
import { count, Transcript } from './Transcript.tsx'
import { toCar } from './toCar.ts'

export type VerificationReportProps = {
  state: VerificationState
  anchors: Pick<Anchors, 'source' | 'isOperatorNode'>
  /** The service's answer, where the receipt was reached through one. */
  proof?: ProofPayload | undefined
  /** Offered where there is no transcript: to try again. */
  onRetry: () => void
  children?: ReactNode
}

/** The verdict, what the service says, and every step. Progress is read out as it comes. */
export function VerificationReport({ state, anchors, proof, onRetry, children }: VerificationReportProps) {
  const outcome = state.phase === 'done' ? state.outcome : undefined
  const claims = toClaims(state, proof)
  const lies = findLies(claims)
  const context = { anchorSource: anchors.source, lies: lies.length, status: proof?.status }
  // Without a receipt nearly all is open, which is not worth a list.
  const areClaimsShown = lies.length > 0 || (claims.length > 0 && outcome !== undefined)
  return (
    <>
      <p className={state.phase === 'running' ? 'verification-progress' : 'visually-hidden'} role="status">
        {toStatusText(state, context)}
      </p>
      {state.phase === 'running' ? <RunningSteps steps={state.steps} /> : null}
      {state.phase === 'failed' ? <Unverified error={state.error} onRetry={onRetry} /> : null}
      {outcome?.isMock ? <MockBanner /> : null}
      {outcome === undefined ? null : <VerdictPanel outcome={outcome} context={context} />}
      {areClaimsShown ? <ClaimList claims={claims} /> : null}
      {children}
      {outcome === undefined ? null : (
        <>
          <Transcript steps={outcome.steps} context={{ ...outcome, isOperatorNode: anchors.isOperatorNode }} />
          <Downloads outcome={outcome} />
        </>
      )}
    </>
  )
}

/**
 * Of the latest answer, which may have changed since the verification began. Where there is no receipt, it can still
 * contradict itself.
 */
function toClaims(state: VerificationState, proof: ProofPayload | undefined): readonly Claim[] {
  if (proof === undefined || state.phase === 'running') return []
  return compareClaims(proof, state.phase === 'done' ? state.outcome : undefined, new Date())
}

const phases: Record<Phase, string> = {
  chain: 'Asking the chain for the event of the transaction.',
  proof: 'Asking the service for the proof.',
  receipt: 'Fetching the receipt by its CID.',
  blocks: 'Fetching the blocks that the receipt names.',
  collateral: 'Fetching the collateral that the receipt names.',
  steps: 'Checking every step.',
}

function toStatusText(state: VerificationState, context: VerdictContext): string {
  switch (state.phase) {
    case 'idle':
      return ''
    case 'running':
      return `Your browser is verifying. ${state.doing === undefined ? 'Starting the verifier.' : phases[state.doing]}`
    case 'failed':
      return 'The receipt could not be verified.'
    case 'done':
      return `${describeVerdict(state.outcome, context).title}. ${count(state.outcome.steps)}`
  }
}

/** Simulated evidence must never be taken for hardware, whatever else the page says. */
function MockBanner() {
  return (
    <p className="mock-banner">
      <strong>MOCK</strong> Simulated silicon, for development. This evidence proves nothing about hardware.
    </p>
  )
}

const marks = { good: 'pass', warning: 'mock', bad: 'fail' } as const satisfies Record<string, Mark>

function VerdictPanel({ outcome, context }: { outcome: Outcome; context: VerdictContext }) {
  const { tone, title, sentence } = describeVerdict(outcome, context)
  const { receipt, content, problems, verdict, steps } = outcome
  const first = steps.find(({ status }) => status === 'fail')
  return (
    <section className={`verdict verdict-${tone}`} aria-labelledby="verdict-title" data-verdict={verdict}>
      <p className="verdict-mark">
        <StatusMark mark={marks[tone]} text="Your browser’s verdict" />
      </p>
      <h2 id="verdict-title">{title}</h2>
      <p>{sentence}</p>
      {first === undefined ? null : (
        <p>
          <strong>{first.title}:</strong> does not hold. {toPrintable(first.detail)}
        </p>
      )}
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem}>{toPrintable(problem)}</li>
          ))}
        </ul>
      )}
      {receipt === undefined ? null : <Signed receipt={receipt} content={content} />}
    </section>
  )
}

/** What was signed, in words. Of an off-chain signature that is what an opening shows. */
function Signed({ receipt, content }: { receipt: NonNullable<Outcome['receipt']>; content: Outcome['content'] }) {
  const { title, sentence, warnings, facts } = describeSigned(receipt, content)
  // The facts of a transaction say it all.
  const isExplained = 'kind' in receipt && receipt.kind !== 'transaction'
  return (
    <>
      {isExplained ? (
        <>
          <h3>{title}</h3>
          <p>{sentence}</p>
        </>
      ) : null}
      {warnings.map((warning) => (
        <p key={warning} className="signed-warning">
          <strong>Warning:</strong> {warning}
        </p>
      ))}
      <dl className="evidence-facts">
        {facts.map(({ name, value }) => (
          <div key={`${name} ${value}`}>
            <dt>{name}</dt>
            <dd className="signed-value">{name === 'Signed' ? <time dateTime={value}>{value}</time> : value}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function Downloads({ outcome }: { outcome: Outcome }) {
  const { bytes, cid, collateral, receipt, view } = outcome
  const car = useMemo(() => (receipt?.version === ATTESTATION_V2 ? toCar(outcome) : undefined), [outcome, receipt])
  if (receipt === undefined) return null
  return (
    <section className="card" aria-labelledby="downloads-title">
      <h2 id="downloads-title">Keep the evidence</h2>
      <p>
        With {car === undefined ? 'these two files' : 'this file'}, to the byte, everything can be checked offline at
        any later time, but for when the signature was made: for that, ask the chain.
      </p>
      <p className="actions">
        {car === undefined ? (
          <DownloadLink bytes={bytes} name={`${cid}.json`}>
            Download the receipt
          </DownloadLink>
        ) : (
          <DownloadLink bytes={car} name={`${cid}.car`} type="application/vnd.ipld.car">
            Download the receipt with its blocks
          </DownloadLink>
        )}
        {car !== undefined || collateral === undefined || view === undefined ? null : (
          <DownloadLink bytes={collateral.bytes} name={`${view.signer.collateral}.json`}>
            Download the collateral
          </DownloadLink>
        )}
      </p>
    </section>
  )
}

function Unverified({ error, onRetry }: { error: ServiceError; onRetry: () => void }) {
  const { title, advice } = toFailureWords(error)
  return (
    <Notice tone="danger" title={title} isAlert>
      <p>{advice}</p>
      <p className="transcript-detail">{toPrintable(describeError(error).message)}</p>
      <p className="actions">
        <button type="button" className="button button-quiet" onClick={onRetry}>
          Try again
        </button>
      </p>
    </Notice>
  )
}
