import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Why there is no verdict. The steps say what is wrong with a receipt. */
export type VerifierErrorCode =
  /** Fix the call: an option or argument is missing, unknown, malformed, or contradicts another. */
  | 'invalid_arguments'
  /** Fix the call: a file is not there, is no regular file, is empty, or cannot be read. */
  | 'file_unreadable'
  /** Fix the call: a file cannot be written. */
  | 'file_unwritable'
  /** Restore the file, or begin without it: what the monitor kept of earlier looks is damaged. */
  | 'state_malformed'
  /** Fix the manifest: the details name every fault in it. */
  | 'manifest_malformed'
  /** Fix the call: the collateral file is not the one that the receipt names. */
  | 'collateral_not_named'
  /** Fix the call: the file is neither a quote, a report, a receipt nor collateral. */
  | 'evidence_unrecognised'
  /** Check the link: the service knows no such proof. */
  | 'proof_not_found'
  /** Retry later: the service has not pinned the receipt yet, or could not. */
  | 'proof_not_pinned'
  /** Retry, or name another source: a server could not be reached, or its answer is of no use. */
  | 'fetch_failed'
  /** Retry, or name another node: the chain could not be asked. */
  | 'chain_unavailable'
  /** Retry later, or check contract and chain: no event names a receipt for this transaction. */
  | 'event_not_found'

/** What the reader left out or gave too much of. How to give it is for each program to say: the command line has options, a page has fields. */
export type ReaderNeed = 'contract' | 'service' | 'node' | 'gateway' | 'time' | 'collateral-of-time' | 'one-collateral'

/** `status` is that of the HTTP answer, where there was one. */
export class VerifierError extends ServiceError<VerifierErrorCode> {
  override name = 'VerifierError'
  declare readonly need: ReaderNeed | undefined
  constructor(
    code: VerifierErrorCode,
    message: string,
    { need, ...options }: ServiceErrorOptions & { need?: ReaderNeed } = {},
  ) {
    super(code, message, options)
    this.need = need
  }
}

/** One line for people, and the stable code beside it. */
export function describeError(error: unknown): { code: string; message: string } {
  if (error instanceof ServiceError) {
    const { code, details } = error
    const message = details ? `${error.message}: ${details}` : error.message
    return { code, message: code === 'receipt_not_canonical' ? `${message}; not a byte of it may be changed` : message }
  }
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { code: 'internal', message: `internal error, nothing was verified: ${reason}` }
}

/** Adds the name of the file or source to an error of ours. */
export function withSource<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const details = error.details === undefined ? name : `${name} (${error.details})`
    throw new ServiceError(error.code, error.message, { details, cause: error })
  }
}
