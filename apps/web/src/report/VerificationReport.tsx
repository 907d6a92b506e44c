import type { ProofPayload } from '@countersign/protocol'
import {
  type Claim,
  describeError,
  describePhase,
  describeSigned,
  describeVerdict,
  findLies,
  nameSigned,
  type Outcome,
  toPrintable,
  type VerdictContext,
} from '@countersign/verify'
import type { ReactNode } from 'react'
import type { Anchors } from '../anchors/trust.ts'
import { Address } from '../ui/Address.tsx'
import { Button } from '../ui/Button.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toDateTime } from '../words/format.ts'
import type { VerificationState } from '../worker/useVerification.ts'
import { Checks, countSteps } from './Checks.tsx'
import { toClaims } from './ClaimList.tsx'
import { type FailureWords, toFailureWords } from './failureWords.ts'
import { type Mark, StatusMark } from './StatusMark.tsx'

type VerificationReportProps = {
  state: VerificationState
  anchors: Pick<Anchors, 'source' | 'isOperatorNode'>
  /** The service's response, if the receipt came from a proof link. */
  proof?: ProofPayload | undefined
  onRetry: () => void
  /** Shown after what was signed. */
  children?: ReactNode
}

/** The verdict, what was signed, and every check. Screen readers announce the progress. */
export function VerificationReport({ state, anchors, proof, onRetry, children }: VerificationReportProps) {
  const outcome = state.phase === 'done' ? state.outcome : undefined
  const lies = findLies(toClaims(state, proof))
  const context = { anchorSource: anchors.source, lies: lies.length, status: proof?.status }
  return (
    <>
      <p className={state.phase === 'running' ? 'verification-progress' : 'visually-hidden'} role="status">
        {toStatusText(state, context)}
      </p>
      {state.phase === 'failed' ? (
        <FailureNotice words={toFailureWords(state.error)} detail={describeError(state.error).message}>
          <Button look="quiet" onClick={onRetry}>
            Try again
          </Button>
        </FailureNotice>
      ) : null}
      {outcome === undefined ? null : (
        <>
          <VerdictPanel outcome={outcome} lies={lies} context={context} />
          <SignedPanel outcome={outcome} />
        </>
      )}
      {children}
      {state.phase === 'running' ? <Checks steps={state.steps} context={undefined} /> : null}
      {outcome === undefined ? null : (
        <Checks steps={outcome.steps} context={{ ...outcome, isOperatorNode: anchors.isOperatorNode }} />
      )}
    </>
  )
}

function toStatusText(state: VerificationState, context: VerdictContext): string {
  switch (state.phase) {
    case 'idle':
      return ''
    case 'running':
      return `Verifying in your browser. ${state.doing === undefined ? 'Starting the verifier.' : describePhase(state.doing)}`
    case 'failed':
      return 'The receipt couldn’t be verified.'
    case 'done':
      return `${describeVerdict(state.outcome, context).title}. ${countSteps(state.outcome.steps)}`
  }
}

export function FailureNotice(props: { words: FailureWords; detail: string; children: ReactNode }) {
  const { words, detail, children } = props
  return (
    <Notice tone="bad" title={words.title} isAlert>
      <p>{words.advice}</p>
      <p className="transcript-detail">{toPrintable(detail)}</p>
      <p className="actions">{children}</p>
    </Notice>
  )
}

const ADDRESS = /(0x[0-9a-fA-F]{40})/

/** Describes what was signed. For an off-chain signature, the content comes from an opening. */
function SignedPanel({ outcome }: { outcome: Outcome }) {
  const { receipt, content, owner } = outcome
  if (receipt === undefined) return null
  const { title, sentence, warnings, facts } = describeSigned({ ...outcome, receipt }, { toTime: toDateTime })
  return (
    <section className="card signed" aria-labelledby="signed-title">
      <h2 id="signed-title">{nameSigned(outcome)}</h2>
      <h3>{title}</h3>
      <p className="signed-sentence">{sentence.split(ADDRESS).map(toPart)}</p>
      {warnings.map((warning) => (
        <p key={warning} className="signed-warning">
          <strong>Warning:</strong> {warning}
        </p>
      ))}
      <details open={content !== undefined || owner !== undefined}>
        <summary>All fields</summary>
        <dl className="evidence-facts stack">
          {facts.map(({ name, value }) => (
            <div key={`${name} ${value}`}>
              <dt>{name}</dt>
              <dd className="signed-value">{value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}

function toPart(part: string, index: number) {
  return ADDRESS.test(part) ? <Address key={index} address={part} /> : part
}

const marks = { good: 'pass', warning: 'mock', bad: 'fail' } as const satisfies Record<string, Mark>

function VerdictPanel(props: { outcome: Outcome; lies: readonly Claim[]; context: VerdictContext }) {
  const { outcome, lies, context } = props
  const { tone, title, sentence, notes } = describeVerdict(outcome, context)
  const { problems, verdict, steps, isMock } = outcome
  const first = steps.find(({ status }) => status === 'fail')
  return (
    <section className={`verdict stack tone-${tone}`} aria-labelledby="verdict-title" data-verdict={verdict}>
      <p>
        <StatusMark mark={marks[tone]} text="Your browser’s verdict" />
      </p>
      <h2 id="verdict-title">{title}</h2>
      {isMock && !title.includes('MOCK') ? <MockNote /> : null}
      <p>{sentence}</p>
      {lies.map(({ member, text, detail }) => (
        <p key={member}>
          <strong>The service says:</strong> {toPrintable(text)} <strong>Your browser found:</strong>{' '}
          {toPrintable(detail)}
        </p>
      ))}
      {first === undefined ? null : (
        <p>
          <strong>Failed: {first.title}.</strong> {toPrintable(first.detail)}
        </p>
      )}
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem}>{toPrintable(problem)}</li>
          ))}
        </ul>
      )}
      {notes.length === 0 ? null : (
        <details className="verdict-notes fine-print">
          <summary>Limits of this verdict</summary>
          {notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </details>
      )}
    </section>
  )
}

/** Simulated evidence must never look like real hardware. */
function MockNote() {
  return (
    <p className="mock-note">
      <strong>MOCK</strong> Simulated hardware, for development. This evidence proves nothing about real hardware.
    </p>
  )
}
