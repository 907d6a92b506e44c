import type { ProofStatus } from '@countersign/protocol'
import { ATTESTATION_V2, DSTACK_SECRET, quantumNote, type Verdict } from '@countersign/receipt'
import type { Outcome } from './verify.ts'

const VERDICTS: Readonly<Record<Verdict, string>> = {
  verified:
    'Every required step passed on genuine hardware, the anchors list the code and settings, and the chain had the receipt soon after signing.',
  mock: 'Some of this evidence is simulated. It proves nothing about hardware.',
  'unknown-code': 'Nothing failed, but an anchor is missing, so the code or the machine may be the wrong one.',
  late: 'Every other step passed, but the receipt was published too long after the stated signing time. The signing may have happened at any time before that, even with keys that leaked in between.',
  unbounded: 'Every other step passed, but nothing on the chain confirms the signing time. The signature may be newer.',
  incomplete: 'Nothing failed, but a required step could not be checked.',
  failed: 'A step failed. Don’t rely on this receipt. The first failure usually explains the others.',
}

export type AnchorSource = 'operator' | 'visitor'

const anchorNames = {
  operator: 'the operator’s anchors',
  visitor: 'your anchors',
} as const satisfies Record<AnchorSource, string>

export type VerdictDescription = {
  tone: 'good' | 'warning' | 'bad'
  title: string
  sentence: string
  /** Limits of a verdict that is not a failure, and a remark about quantum computers for version 2. */
  notes: readonly string[]
}

type Words = Omit<VerdictDescription, 'notes'>

export type VerdictContext = {
  anchorSource: AnchorSource
  /** Number of false claims by the service. */
  lies: number
  /** The proof's status according to the service. */
  status: ProofStatus | undefined
}

type CheckedReceipt = Pick<
  Outcome,
  'verdict' | 'isMockRefused' | 'isKnownCode' | 'steps' | 'isEventMissing' | 'timeBound' | 'view' | 'receipt'
> &
  Partial<Pick<Outcome, 'anchor'>>

/** The verdict in words. Its title names the source of the anchors and all reservations. */
export function describeVerdict(outcome: CheckedReceipt, context: VerdictContext): VerdictDescription {
  const bare = describeBare(outcome, context)
  const words = { ...bare, notes: bare.tone === 'bad' ? [] : toNotes(outcome) }
  // A failure needs no reservations, and an incomplete verdict states them already.
  if (words.tone === 'bad' || outcome.verdict === 'incomplete') return words
  const reservations = toReservations(outcome, context)
  if (reservations.length === 0) return words
  const isTimeUnknown = outcome.verdict === 'late' || outcome.verdict === 'unbounded'
  const title = `${words.title}${isTimeUnknown ? ': ' : ', but '}${reservations.join(', and ')}`
  return { ...words, tone: 'warning', title }
}

function toNotes({ isKnownCode, view, receipt }: Pick<Outcome, 'isKnownCode' | 'view' | 'receipt'>): string[] {
  return [
    // The owner of a dstack app can give the secret to other code.
    ...(isKnownCode && view?.signer.config.rootSecret === 'dstack' ? [DSTACK_SECRET] : []),
    ...(view !== undefined && 'kind' in view.entropy ? [BEACON_NOTE] : []),
    ...(view !== undefined && receipt?.version === ATTESTATION_V2 ? [quantumNote] : []),
  ]
}

const BEACON_NOTE = 'The random sample comes from a public beacon. All signatures of its round share it.'

function toReservations(
  { steps, isEventMissing, timeBound, view, anchor }: CheckedReceipt,
  { status }: VerdictContext,
): string[] {
  const reservations: string[] = []
  const tcbStatus = view?.signer.tcbStatus
  if (tcbStatus !== undefined && tcbStatus !== 'UpToDate') {
    reservations.push(`the processor was not up to date (${tcbStatus})`)
  }
  if (timeBound === 'late') reservations.push(`the ${anchor ? 'checkpoint' : 'event'} came too late`)
  if (isEventMissing) {
    const says = status === undefined ? '' : ` (the service says: ${status})`
    reservations.push(`the chain does not point to it${says}`)
  } else if (steps.find(({ id }) => id === 'event')?.status === 'skip') {
    reservations.push(anchor ? 'the checkpoint could not be checked' : 'the chain was not asked')
  }
  return reservations
}

function describeBare(outcome: CheckedReceipt, { anchorSource, lies }: VerdictContext): Words {
  const { verdict, isMockRefused, isKnownCode, steps } = outcome
  const sentence = VERDICTS[verdict]
  // Comes before missing evidence and false claims: a claim that the quote was verified is false for this reason.
  if (isMockRefused && verdict !== 'failed') {
    const title = 'Not verified: MOCK evidence'
    return { tone: 'bad', title, sentence: `${VERDICTS.mock} Mock evidence is not accepted here.` }
  }
  // A service that shows one transaction and links the receipt of another one makes false claims.
  const isOtherSubject = steps.every(({ id, status }) => status !== 'fail' || id === 'subject')
  if (lies > 0 && !isMockRefused && (verdict !== 'failed' || isOtherSubject)) {
    return {
      tone: 'bad',
      title: 'Not verified: the service says something false about this receipt',
      sentence: 'The receipt may be valid, but it is not what the service claims.',
    }
  }
  switch (verdict) {
    case 'failed':
      return { tone: 'bad', title: 'Not verified', sentence }
    case 'verified':
      return anchorSource === 'operator'
        ? {
            tone: 'good',
            title: `Verified, against ${anchorNames.operator}`,
            sentence: `${sentence} To check that it is the right code, use anchors from another source.`,
          }
        : { tone: 'good', title: `Verified, against ${anchorNames.visitor}`, sentence }
    case 'mock': {
      const anchors = isKnownCode
        ? `Code and settings match ${anchorNames[anchorSource]}.`
        : 'Some anchors are also missing.'
      return { tone: 'warning', title: 'Nothing failed, on MOCK evidence', sentence: `${sentence} ${anchors}` }
    }
    case 'unknown-code':
      return {
        tone: 'warning',
        title: 'Genuine hardware, unknown code',
        sentence: `${sentence} Genuine hardware can run anyone’s program.`,
      }
    case 'late':
    case 'unbounded':
      return { tone: 'warning', title: 'Genuine hardware, known code, unknown time', sentence }
    case 'incomplete':
      return { tone: 'warning', title: 'Not verified: evidence is missing', sentence }
  }
}
