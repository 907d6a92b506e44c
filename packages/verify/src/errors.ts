import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Reasons for having no verdict. Faults of a receipt are reported in its steps. */
export type VerifierErrorCode =
  /** Fix the call: an option or argument is missing, unknown, malformed, or contradicts another one. */
  | 'invalid_arguments'
  /** Fix the call: a file is missing, empty, unreadable, or not a regular file. */
  | 'file_unreadable'
  /** Fix the call: a file cannot be written. */
  | 'file_unwritable'
  /** Restore the monitor's state file, or start without it: it is damaged. */
  | 'state_malformed'
  /** Fix the manifest: the details list every fault. */
  | 'manifest_malformed'
  /** Fix the call: the receipt names other collateral. */
  | 'collateral_not_named'
  /** Fix the call: the file is neither a quote, a report, a receipt nor collateral. */
  | 'evidence_unrecognised'
  /** Check the link: the service knows no such proof. */
  | 'proof_not_found'
  /** Retry later: the service has not pinned the receipt yet, or could not. */
  | 'proof_not_pinned'
  /** Retry, or name another source: a server could not be reached, or its response is invalid. */
  | 'fetch_failed'
  /** Retry, or name another node: the chain is unavailable. */
  | 'chain_unavailable'
  /** Retry later, or check contract and chain: no event or anchor block names a receipt for this transaction. */
  | 'event_not_found'
  /** Don't rely on the amounts: the proof of a vault's budget does not hold. */
  | 'budget_not_proven'
  /** Distrust the enclave’s code: its app-compose.json runs something else than a release, or in another way. */
  | 'app_compose_rejected'
  /** Distrust the log of releases: its files, records and checkpoint don't belong together. */
  | 'release_log_invalid'

/** Missing or superfluous input. Each program adds its own hint, such as an option or a form field. */
export type ReaderNeed = 'contract' | 'service' | 'node' | 'gateway' | 'time' | 'collateral-of-time' | 'one-collateral'

/** `status` is the HTTP status, if there was a response. */
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

/** A message in one line, and the stable code. */
export function describeError(error: unknown): { code: string; message: string } {
  if (error instanceof ServiceError) {
    const { code, details } = error
    const message = details ? `${error.message}: ${details}` : error.message
    return { code, message: code === 'receipt_not_canonical' ? `${message}; use the unchanged bytes` : message }
  }
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { code: 'internal', message: `internal error, nothing was verified: ${reason}` }
}

/** Adds the name of the file or source to a `ServiceError`. */
export function withSource<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const details = error.details === undefined ? name : `${name} (${error.details})`
    throw new ServiceError(error.code, error.message, { details, cause: error })
  }
}
