import { ServiceError } from '@countersign/protocol'
import type { ReceiptErrorCode } from '@countersign/receipt'
import type { Conclusion, Outcome, SourceTrace, VerifierErrorCode } from '@countersign/verify'

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
 * Invalid receipt bytes are bad input, whatever named them. A run never returns 0 if the requested file couldn't be written, or if the
 * requested links lead to no source.
 */
export function toExitCode({
  conclusion,
  receipt,
  unwritten,
  trace,
}: Pick<Outcome, 'conclusion'> & {
  receipt: object | undefined
  unwritten?: string
  trace?: Pick<SourceTrace, 'source'>
}): ExitCode {
  if (receipt === undefined) return exitCodes.badInput
  const exitCode = CONCLUSIONS[conclusion]
  if (exitCode !== exitCodes.verified) return exitCode
  if (unwritten !== undefined) return exitCodes.badInput
  return trace !== undefined && trace.source === undefined ? exitCodes.unavailable : exitCode
}

/** Any other error is a bug in this program. It shares 1 with a failed step, because nothing was verified. */
export function toErrorExitCode(error: unknown): ExitCode {
  if (!(error instanceof ServiceError)) return exitCodes.failed
  if (error.code === ('proof_not_found' satisfies VerifierErrorCode)) return exitCodes.noSuchProof
  // Like a changed receipt in JSON.
  if (error.code === ('car_mismatch' satisfies ReceiptErrorCode)) return exitCodes.failed
  return UNAVAILABLE.includes(error.code) ? exitCodes.unavailable : exitCodes.badInput
}
