import type { Verdict } from '@countersign/receipt'

/**
 * What a reader may rely on:
 * - `accepted`: every required step passed and every anchor matched, on hardware, or on mock evidence where that is allowed
 * - `failed`: a step failed
 * - `incomplete`: nothing failed, but a required step could not be judged
 * - `mock`: the evidence is simulated, and that is not allowed
 * - `unknown-code`: nothing failed, but an anchor is missing
 */
export type Conclusion = 'accepted' | 'failed' | 'incomplete' | 'mock' | 'unknown-code'

/** Worst first: what failed, what could not be judged, what is only simulated, what is genuine but unknown. */
export function conclude(
  check: { verdict: Verdict; isKnownCode: boolean },
  options: { allowMock: boolean },
): Conclusion {
  const { verdict, isKnownCode } = check
  switch (verdict) {
    case 'mock':
      if (!options.allowMock) return 'mock'
      return isKnownCode ? 'accepted' : 'unknown-code'
    case 'verified':
      return 'accepted'
    default:
      return verdict
  }
}
