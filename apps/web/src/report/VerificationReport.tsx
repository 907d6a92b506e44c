import type { ProofPayload } from '@countersign/protocol'
import type { ReactNode } from 'react'
import { formatEther } from 'viem'
import { Notice } from '../ui/Notice.tsx'
import { ClaimList } from './ClaimList.tsx'
import { compareClaims, findLies } from './compareClaims.ts'
import { DownloadLink } from './DownloadLink.tsx'
import { describeVerdict, type VerdictContext } from './describeVerdict.ts'
import type { VerificationError, VerificationErrorCode } from './errors.ts'
import { type Mark, StatusMark } from './StatusMark.tsx'
import { count, Transcript } from './Transcript.tsx'
import { toPrintable } from './toPrintable.ts'
import type { Anchors } from './useAnchors.ts'
import type { VerificationState } from './useVerification.ts'
import type { Verification } from './verifySubject.ts'

export type VerificationReportProps = {
  state: VerificationState
  anchors: Pick<Anchors, 'source' | 'isOperatorNode'>
  /** The service's answer, where the receipt was reached through one. */
  proof?: ProofPayload | undefined
  /** Offered where there is no transcript: to try again. */
  onRetry: () => void
  children?: ReactNode
}

/** All that came of a verification: the verdict, what the service says, every step. Progress is read out as it comes. */
export function VerificationReport({ state, anchors, proof, onRetry, children }: VerificationReportProps) {
  const verification = state.phase === 'done' ? state.verification : undefined
  const claims = proof === undefined || state.phase === 'running' ? [] : compareClaims(proof, verification)
  const lies = findLies(claims)
  const context = { anchorSource: anchors.source, lies: lies.length, status: proof?.status }
  // Without a receipt nearly all is open, which is not worth a list.
  const areClaimsShown = lies.length > 0 || (claims.length > 0 && verification !== undefined)
  return (
    <>
      <p className={state.phase === 'running' ? 'verification-progress' : 'visually-hidden'} role="status">
        {toStatusText(state, context)}
      </p>
      {state.phase === 'failed' ? <Unverified error={state.error} onRetry={onRetry} /> : null}
      {verification?.isMock ? <MockBanner /> : null}
      {verification === undefined ? null : <VerdictPanel verification={verification} context={context} />}
      {areClaimsShown ? <ClaimList claims={claims} /> : null}
      {children}
      {verification === undefined ? null : (
        <>
          <Transcript
            steps={verification.steps}
            context={{ ...verification, isOperatorNode: anchors.isOperatorNode }}
          />
          <Downloads verification={verification} />
        </>
      )}
    </>
  )
}

function toStatusText(state: VerificationState, context: VerdictContext): string {
  switch (state.phase) {
    case 'idle':
      return ''
    case 'running':
      return `Your browser is verifying. ${state.progress}`
    case 'failed':
      return 'The receipt could not be verified.'
    case 'done':
      return `${describeVerdict(state.verification, context).title}. ${count(state.verification.steps)}`
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

function VerdictPanel({ verification, context }: { verification: Verification; context: VerdictContext }) {
  const { tone, title, sentence } = describeVerdict(verification, context)
  const { receipt, problems, isMock, verdict } = verification
  const first = verification.steps.find(({ status }) => status === 'fail')
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
      {verdict === 'failed' && !isMock && receipt?.signer.mode === 'mock' ? (
        <p>
          The receipt says of itself that it is simulated (MOCK). This site’s configuration does not let simulated
          evidence be told from forged evidence, so it fails.
        </p>
      ) : null}
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem}>{toPrintable(problem)}</li>
          ))}
        </ul>
      )}
      {receipt === undefined ? null : <Subject transaction={receipt.transaction} />}
    </section>
  )
}

function Subject({ transaction }: { transaction: NonNullable<Verification['receipt']>['transaction'] }) {
  const { txHash, from, to, chainId, value, data, signedAt } = transaction
  const dataLength = (data.length - 2) / 2
  return (
    <dl className="evidence-facts">
      <Fact title="Transaction">{txHash}</Fact>
      <Fact title="From wallet">{from}</Fact>
      <Fact title="To">{to}</Fact>
      <Fact title="Amount">{formatEther(BigInt(value))} ether</Fact>
      <Fact title="Data">
        {dataLength === 0 ? 'none' : `${dataLength} ${dataLength === 1 ? 'byte' : 'bytes'}: it calls a contract`}
      </Fact>
      <Fact title="Chain">{chainId}</Fact>
      <Fact title="Signed">
        <time dateTime={signedAt}>{signedAt}</time>
      </Fact>
    </dl>
  )
}

function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Downloads({ verification }: { verification: Verification }) {
  const { bytes, cid, collateral, receipt } = verification
  return (
    <section className="card" aria-labelledby="downloads-title">
      <h2 id="downloads-title">Keep the evidence</h2>
      <p>With these two files, to the byte, the receipt can be verified offline at any later time.</p>
      <p className="actions">
        <DownloadLink bytes={bytes} name={`${cid}.json`}>
          Download the receipt
        </DownloadLink>
        {collateral === undefined || receipt === undefined ? null : (
          <DownloadLink bytes={collateral} name={`${receipt.signer.collateral}.json`}>
            Download the collateral
          </DownloadLink>
        )}
      </p>
    </section>
  )
}

const failures: Record<VerificationErrorCode, { title: string; advice: string }> = {
  receipt_unavailable: {
    title: 'The receipt could not be had',
    advice:
      'No gateway sent the bytes that the CID names. Nothing else is believed. Try again, or ask another gateway with the command below.',
  },
  subject_invalid: { title: 'This does not lead to a receipt', advice: 'Check what you gave.' },
  chain_not_configured: {
    title: 'There is no chain to ask',
    advice: 'Enter a contract and a node under “My own” anchors, or name the receipt by its CID.',
  },
  chain_unavailable: { title: 'The chain could not be asked', advice: 'Try again, or enter another node.' },
  event_not_found: { title: 'No receipt is published for this transaction', advice: 'A fresh one takes some minutes.' },
  internal: {
    title: 'The verifier on this page did not work',
    advice: 'Load the page again. If it stays, use the command line. Nothing was verified.',
  },
}

function Unverified({ error, onRetry }: { error: VerificationError; onRetry: () => void }) {
  const { title, advice } = failures[error.code]
  return (
    <Notice tone="danger" title={title} isAlert>
      <p>{advice}</p>
      <p className="transcript-detail">{toPrintable(error.message)}</p>
      <p className="actions">
        <button type="button" className="button button-quiet" onClick={onRetry}>
          Try again
        </button>
      </p>
    </Notice>
  )
}
