import { type PolicyRefusal, ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/** Every code that the HTTP interface answers, with its status and whether the same call may succeed later. */
export const coordinatorErrors = {
  invalid_json: { status: 400, retryable: false },
  invalid_request: { status: 400, retryable: false },
  invalid_digest: { status: 400, retryable: false },
  invalid_tx_metadata: { status: 400, retryable: false },
  invalid_message: { status: 400, retryable: false },
  invalid_typed_data: { status: 400, retryable: false },
  invalid_policy: { status: 400, retryable: false },
  oauth_state_invalid: { status: 400, retryable: false },
  oauth_exchange_failed: { status: 400, retryable: false },
  oauth_refused: { status: 400, retryable: false },
  not_authenticated: { status: 401, retryable: false },
  session_expired: { status: 401, retryable: false },
  origin_not_allowed: { status: 403, retryable: false },
  grant_invalid: { status: 403, retryable: false },
  key_binding_mismatch: { status: 403, retryable: false },
  policy_refused: { status: 403, retryable: false },
  approvals_missing: { status: 403, retryable: false },
  approval_invalid: { status: 403, retryable: false },
  wallet_not_found: { status: 404, retryable: false },
  vault_not_found: { status: 404, retryable: false },
  proof_not_found: { status: 404, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  not_acceptable: { status: 406, retryable: false },
  body_too_large: { status: 413, retryable: false },
  message_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  wallet_not_provisioned: { status: 409, retryable: false },
  too_many_vaults: { status: 409, retryable: false },
  digest_mismatch: { status: 422, retryable: false },
  unsupported_transaction: { status: 422, retryable: false },
  chain_not_allowed: { status: 422, retryable: false },
  authorization_not_allowed: { status: 422, retryable: false },
  rate_limited: { status: 429, retryable: true },
  quota_spent: { status: 429, retryable: true },
  attestation_invalid: { status: 502, retryable: true },
  signature_invalid: { status: 502, retryable: true },
  provider_unavailable: { status: 503, retryable: true },
  entropy_unavailable: { status: 503, retryable: true },
  policy_not_pinned: { status: 503, retryable: true },
  receipt_unavailable: { status: 503, retryable: true },
  enclave_unavailable: { status: 503, retryable: true },
  collateral_stale: { status: 503, retryable: true },
  log_unavailable: { status: 503, retryable: true },
  database_unavailable: { status: 503, retryable: true },
  shutting_down: { status: 503, retryable: true },
  internal: { status: 500, retryable: false },
} as const satisfies Record<string, { status: number; retryable: boolean }>

export type CoordinatorErrorCode = keyof typeof coordinatorErrors

/** A failure whose code and `details` the caller gets, so neither may reveal internals. */
export class CoordinatorError extends ServiceError<CoordinatorErrorCode> {
  override name = 'CoordinatorError'
  /** For `policy_refused`: the verdict of each rule. */
  readonly refusal: PolicyRefusal | undefined

  constructor(
    code: CoordinatorErrorCode,
    message: string,
    options?: ServiceErrorOptions & { refusal?: PolicyRefusal },
  ) {
    super(code, message, options)
    this.refusal = options?.refusal
  }
}

export function invalidRequest(details: string): CoordinatorError {
  return new CoordinatorError('invalid_request', 'invalid request', { details })
}

/** What an enclave has answered is not what it was asked for, or not proven. */
export function invalidAnswer(details?: string): CoordinatorError {
  return new CoordinatorError('attestation_invalid', 'the enclave’s answer does not hold', { details })
}

/** The enclave derives another key for a vault than is stored. */
export function vaultKeyChanged(): CoordinatorError {
  return new CoordinatorError('key_binding_mismatch', 'the key of this vault has changed')
}

/** The code that a caller gets: `internal` for everything that is not a `CoordinatorError`. */
export function toPublicCode(error: unknown): CoordinatorErrorCode {
  return error instanceof CoordinatorError && Object.hasOwn(coordinatorErrors, error.code) ? error.code : 'internal'
}
