/** Why there is no transcript. What is wrong with a receipt is told by its steps. */
export type VerificationErrorCode =
  /** Retry, or name another gateway: nobody sent the bytes that the CID names. */
  | 'receipt_unavailable'
  /** Fix the input: what was given cannot name a receipt. */
  | 'subject_invalid'
  /** Fix the settings: there is no contract or node to ask about transactions. */
  | 'chain_not_configured'
  /** Retry, or name another node. */
  | 'chain_unavailable'
  /** Retry later, or check contract and chain: no event names a receipt for this transaction. */
  | 'event_not_found'
  /** Reload the page, or use the command line: the verifier itself did not work. */
  | 'internal'

export class VerificationError extends Error {
  override name = 'VerificationError'
  readonly code: VerificationErrorCode
  constructor(code: VerificationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
