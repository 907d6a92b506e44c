import type { ProofStatus } from '@countersign/protocol'
import { ATTESTATION_V2, DSTACK_SECRET, quantumNote, type Verdict } from '@countersign/receipt'
import type { Outcome } from './verify.ts'

/** What each verdict means, in a sentence that promises no more than was shown. */
const VERDICTS: Readonly<Record<Verdict, string>> = {
  verified:
    'Every required step holds on genuine hardware, code and settings are those that the anchors name, and the chain had the receipt soon after the signing.',
  mock: 'A part of this evidence is simulated. It proves nothing about hardware.',
  'unknown-code': 'Nothing failed, but an anchor is missing, so the code or the machine may not be the right one.',
  late: 'Every other step holds, but the event came too long after the stated time of signing. The signature may have been made at any time before the event, even with keys that leaked meanwhile.',
  unbounded:
    'Every other step holds, but no event was seen, so nothing shows that the signature was made when it says. It may be younger.',
  incomplete: 'Nothing failed, but a required step could not be judged.',
  failed: 'A step failed. Do not rely on this receipt. The first failure usually explains the others.',
}

export type AnchorSource = 'operator' | 'visitor'

/** Every text uses these names for the anchors. */
const anchorNames = {
  operator: 'the operator’s anchors',
  visitor: 'your anchors',
} as const satisfies Record<AnchorSource, string>

export type VerdictDescription = {
  tone: 'good' | 'warning' | 'bad'
  title: string
  sentence: string
  /** What a verdict that is no failure does not rule out, and what the signatures of version 2 buy. */
  notes: readonly string[]
}

type Words = Omit<VerdictDescription, 'notes'>

export type VerdictContext = {
  anchorSource: AnchorSource
  /** How many claims of the service are false. */
  lies: number
  /** What the service says of the proof, where it was asked. */
  status: ProofStatus | undefined
}

type Judged = Pick<
  Outcome,
  'verdict' | 'isMockRefused' | 'isKnownCode' | 'steps' | 'isEventMissing' | 'timeBound' | 'view' | 'receipt'
>

/** The verdict as page and command line show it: with whose anchors they were, and every reservation in its title. */
export function describeVerdict(judged: Judged, context: VerdictContext): VerdictDescription {
  const bare = describeBare(judged, context)
  const words = { ...bare, notes: bare.tone === 'bad' ? [] : toNotes(judged) }
  // Bad news is not softened by small print, and what is incomplete says so already.
  if (words.tone === 'bad' || judged.verdict === 'incomplete') return words
  const reservations = toReservations(judged, context)
  if (reservations.length === 0) return words
  const isTimeUnknown = judged.verdict === 'late' || judged.verdict === 'unbounded'
  const title = `${words.title}${isTimeUnknown ? ': ' : ', but '}${reservations.join(', and ')}`
  return { ...words, tone: 'warning', title }
}

function toNotes({ isKnownCode, view, receipt }: Pick<Outcome, 'isKnownCode' | 'view' | 'receipt'>): string[] {
  return [
    // Known code is worth less where others can be admitted to its secret.
    ...(isKnownCode && view?.signer.config.rootSecret === 'dstack' ? [DSTACK_SECRET] : []),
    ...(view !== undefined && 'kind' in view.entropy ? [BEACON_NOTE] : []),
    ...(view !== undefined && receipt?.version === ATTESTATION_V2 ? [quantumNote] : []),
  ]
}

const BEACON_NOTE = 'The random sample is of a public beacon, shared by all signatures of its round.'

function toReservations({ steps, isEventMissing, timeBound, view }: Judged, { status }: VerdictContext): string[] {
  const reservations: string[] = []
  const tcbStatus = view?.signer.tcbStatus
  if (tcbStatus !== undefined && tcbStatus !== 'UpToDate') {
    reservations.push(`the processor was not up to date (${tcbStatus})`)
  }
  if (timeBound === 'late') reservations.push('the event came too late')
  if (isEventMissing) {
    const says = status === undefined ? '' : ` (the service says: ${status})`
    reservations.push(`the chain does not point to it${says}`)
  } else if (steps.find(({ id }) => id === 'event')?.status === 'skip') {
    reservations.push('the chain was not asked')
  }
  return reservations
}

function describeBare(judged: Judged, { anchorSource, lies }: VerdictContext): Words {
  const { verdict, isMockRefused, isKnownCode, steps } = judged
  const sentence = VERDICTS[verdict]
  // Before all that could be missing, and before claims: one that the quote was verified is false for this very reason.
  if (isMockRefused && verdict !== 'failed') {
    const title = 'Not verified: MOCK evidence'
    return { tone: 'bad', title, sentence: `${VERDICTS.mock} It is not accepted here.` }
  }
  // A service that shows one transaction and links the receipt of another shows in its claims.
  const isOtherSubject = steps.every(({ id, status }) => status !== 'fail' || id === 'subject')
  if (lies > 0 && !isMockRefused && (verdict !== 'failed' || isOtherSubject)) {
    return {
      tone: 'bad',
      title: 'Not verified: the service says something false about this receipt',
      sentence: 'The receipt may be good in itself, but it is not what the service says it is.',
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
            sentence: `${sentence} Only anchors from another source can show whether it is the right code.`,
          }
        : { tone: 'good', title: `Verified, against ${anchorNames.visitor}`, sentence }
    case 'mock': {
      const anchors = isKnownCode
        ? `Code and settings are those that ${anchorNames[anchorSource]} name.`
        : 'Some anchors are missing too.'
      return { tone: 'warning', title: 'Nothing failed, on MOCK evidence', sentence: `${sentence} ${anchors}` }
    }
    case 'unknown-code':
      return {
        tone: 'warning',
        title: 'Genuine hardware, unknown code',
        sentence: `${sentence} Anyone’s program can run on genuine hardware.`,
      }
    case 'late':
    case 'unbounded':
      return { tone: 'warning', title: 'Genuine hardware, known code, unknown time', sentence }
    case 'incomplete':
      return { tone: 'warning', title: 'Not verified: evidence is missing', sentence }
  }
}
