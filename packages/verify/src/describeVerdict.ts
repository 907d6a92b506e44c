import type { ProofStatus } from '@countersign/protocol'
import type { Verification } from './verifySubject.ts'

export type AnchorSource = 'operator' | 'visitor'

export type VerdictWords = { tone: 'good' | 'warning' | 'bad'; title: string; sentence: string }

export type VerdictContext = {
  anchorSource: AnchorSource
  lies: number
  /** What the service says of the proof, where it was asked. */
  status: ProofStatus | undefined
}

type Judged = Pick<Verification, 'verdict' | 'isKnownCode' | 'steps' | 'isEventMissing' | 'receipt'>

/** The verdict in words that promise no more than was shown. */
export function describeVerdict(verification: Judged, context: VerdictContext): VerdictWords {
  const words = describeBare(verification, context)
  // Bad news is not softened by small print, and what is incomplete says so already.
  if (words.tone === 'bad' || verification.verdict === 'incomplete') return words
  const reservations = toReservations(verification, context)
  if (reservations.length === 0) return words
  return { ...words, tone: 'warning', title: `${words.title}, but ${reservations.join(', and ')}` }
}

function toReservations({ steps, isEventMissing, receipt }: Judged, { status }: VerdictContext): string[] {
  const reservations: string[] = []
  if (receipt !== undefined && receipt.signer.tcbStatus !== 'UpToDate') {
    reservations.push(`the processor was not up to date (${receipt.signer.tcbStatus})`)
  }
  if (isEventMissing) {
    const says = status === undefined ? '' : ` (the service says: ${status})`
    reservations.push(`the chain does not point to it${says}`)
  } else if (steps.find(({ id }) => id === 'event')?.status === 'skip') {
    reservations.push('the chain was not asked')
  }
  return reservations
}

function describeBare({ verdict, isKnownCode }: Judged, { anchorSource, lies }: VerdictContext): VerdictWords {
  if (verdict === 'failed') {
    return {
      tone: 'bad',
      title: 'Not verified',
      sentence: 'A step failed. Do not rely on this receipt. The first failure usually explains the others.',
    }
  }
  if (lies > 0) {
    return {
      tone: 'bad',
      title: 'The service says something false about this receipt',
      sentence:
        'The receipt may be good in itself, but it is not what the service says it is. See which claims are false.',
    }
  }
  const whose = anchorSource === 'operator' ? 'this operator names' : 'you named'
  switch (verdict) {
    case 'verified':
      return anchorSource === 'operator'
        ? {
            tone: 'good',
            title: 'Verified, against the operator’s own anchors',
            sentence:
              'Genuine hardware made this signature, running the code that this operator names. Whether that is the right code you can only tell with anchors of your own.',
          }
        : {
            tone: 'good',
            title: 'Verified: genuine hardware, running code you named',
            sentence: 'Every required step holds, and code and settings are the ones that you entered.',
          }
    case 'mock':
      return {
        tone: 'warning',
        title: 'Nothing failed, on MOCK evidence',
        sentence: `The steps hold, but a part of the evidence is simulated.${
          isKnownCode ? ` Code and settings are those that ${whose}.` : ' Not every anchor is given either.'
        }`,
      }
    case 'unknown-code':
      return {
        tone: 'warning',
        title: 'Genuine hardware, unknown code',
        sentence:
          'Nothing failed, but there is no anchor for all of the code and settings. Anyone’s program can run on genuine hardware.',
      }
    case 'incomplete':
      return {
        tone: 'warning',
        title: 'Not verified: evidence is missing',
        sentence: 'Nothing failed, but a required step could not be judged.',
      }
  }
}
