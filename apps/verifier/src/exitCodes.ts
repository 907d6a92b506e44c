import { ServiceError } from '@countersign/protocol'
import type { ReceiptErrorCode } from '@countersign/receipt'
import type { Conclusion, Outcome, VerifierErrorCode } from '@countersign/verify'

/** Scripts depend on these numbers. `help.ts` and the README explain them. */
export const exitCodes = {
  verified: 0,
  failed: 1,
  unknownCode: 2,
  mock: 3,
  badInput: 4,
  unavailable: 5,
  late: 6,
  unbounded: 7,
  noSuchProof: 8,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

const CONCLUSIONS: Readonly<Record<Conclusion, ExitCode>> = {
  accepted: exitCodes.verified,
  failed: exitCodes.failed,
  contradicted: exitCodes.failed,
  incomplete: exitCodes.unavailable,
  mock: exitCodes.mock,
  'unknown-code': exitCodes.unknownCode,
  late: exitCodes.late,
  unbounded: exitCodes.unbounded,
}

const UNAVAILABLE: readonly string[] = [
  'proof_not_pinned',
  'fetch_failed',
  'chain_unavailable',
  'event_not_found',
] satisfies VerifierErrorCode[]

/**
 * Invalid receipt bytes are bad input, whatever named them. A run whose requested file couldn't be written never returns 0, unless the
 * verdict already has a worse code.
 */
export function toExitCode({
  conclusion,
  receipt,
  unwritten,
}: Pick<Outcome, 'conclusion'> & { receipt: object | undefined; unwritten?: string }): ExitCode {
  if (receipt === undefined) return exitCodes.badInput
  const exitCode = CONCLUSIONS[conclusion]
  return exitCode === exitCodes.verified && unwritten !== undefined ? exitCodes.badInput : exitCode
}

/** Any other error is a bug in this program. It shares 1 with a failed step, because nothing was verified. */
export function toErrorExitCode(error: unknown): ExitCode {
  if (!(error instanceof ServiceError)) return exitCodes.failed
  if (error.code === ('proof_not_found' satisfies VerifierErrorCode)) return exitCodes.noSuchProof
  // Like a changed receipt in JSON.
  if (error.code === ('car_mismatch' satisfies ReceiptErrorCode)) return exitCodes.failed
  return UNAVAILABLE.includes(error.code) ? exitCodes.unavailable : exitCodes.badInput
}
