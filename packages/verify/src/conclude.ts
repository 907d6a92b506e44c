import type { TimeBound, Verdict } from '@countersign/receipt'
import type { Claim } from './compareClaims.ts'

/**
 * What a reader may rely on:
 * - `accepted`: every required step passed, every anchor matched and the chain bounds the time, on hardware, or on mock evidence
 *   where that is allowed
 * - `failed`: a step failed
 * - `contradicted`: nothing failed, but the service says something false about the receipt
 * - `mock`: the evidence is simulated, and that is not allowed
 * - `incomplete`: nothing failed, but a required step could not be judged
 * - `unknown-code`: nothing failed, but an anchor is missing
 * - `late`: all else holds, but the event came too long after the stated time of signing
 * - `unbounded`: all else holds, but no event was seen: no chain was asked, or it has none yet
 */
export type Conclusion =
  | 'accepted'
  | 'failed'
  | 'contradicted'
  | 'incomplete'
  | 'mock'
  | 'unknown-code'
  | 'late'
  | 'unbounded'

/**
 * Worst first: what failed, what the service lies about, what is simulated without leave, what could not be judged, what is
 * genuine but unknown, and what is known but of a time that nothing bounds. Whatever else is missing, evidence that is known to
 * be simulated will not become hardware; where it is allowed, it is judged as hardware is.
 */
export function conclude(check: {
  verdict: Verdict
  isKnownCode: boolean
  timeBound: TimeBound
  isMockRefused: boolean
  lies: readonly Pick<Claim, 'member'>[]
}): Conclusion {
  const { verdict, isKnownCode, timeBound, isMockRefused, lies } = check
  if (verdict === 'failed') return 'failed'
  // That the quote was verified is false only because mock evidence is refused, so that this claim adds nothing to it.
  if (lies.some(({ member }) => !(isMockRefused && member === 'kmsQuoteVerified'))) return 'contradicted'
  if (isMockRefused) return 'mock'
  switch (verdict) {
    case 'mock':
      if (!isKnownCode) return 'unknown-code'
      return timeBound === 'bounded' ? 'accepted' : timeBound
    case 'verified':
      return 'accepted'
    default:
      return verdict
  }
}
