import type { Verdict } from '@countersign/receipt'

/**
 * What a reader may rely on:
 * - `accepted`: every required step passed and every anchor matched, on hardware, or on mock evidence where that is allowed
 * - `failed`: a step failed
 * - `mock`: the evidence is simulated, and that is not allowed
 * - `incomplete`: nothing failed, but a required step could not be judged
 * - `unknown-code`: nothing failed, but an anchor is missing
 */
export type Conclusion = 'accepted' | 'failed' | 'incomplete' | 'mock' | 'unknown-code'

/**
 * Worst first: what failed, what is simulated without leave, what could not be judged, what is genuine but unknown. Whatever
 * else is missing, evidence that is known to be simulated will not become hardware.
 */
export function conclude(check: { verdict: Verdict; isKnownCode: boolean; isMockRefused: boolean }): Conclusion {
  const { verdict, isKnownCode, isMockRefused } = check
  if (isMockRefused && verdict !== 'failed') return 'mock'
  switch (verdict) {
    case 'mock':
      return isKnownCode ? 'accepted' : 'unknown-code'
    case 'verified':
      return 'accepted'
    default:
      return verdict
  }
}
