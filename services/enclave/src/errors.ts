import { ServiceError } from '@countersign/protocol/core'

/** Error codes for rejected calls, with their HTTP statuses. */
export const errorStatus = {
  invalid_json: 400,
  invalid_request: 400,
  body_too_large: 413,
  not_found: 404,
  method_not_allowed: 405,
  caller_signature_invalid: 401,
  caller_clock_skew: 401,
  caller_unknown: 401,
  caller_not_allowed: 403,
  id_token_invalid: 403,
  id_token_replayed: 403,
  grant_invalid: 403,
  session_not_bound: 403,
  session_expired: 403,
  invalid_policy: 400,
  policy_not_supported: 400,
  challenge_unknown: 403,
  transfer_refused: 403,
  share_refused: 403,
  log_refused: 403,
  states_missing: 403,
  boot_unknown: 404,
  issuer_unavailable: 503,
  time_unknown: 503,
  quote_unavailable: 503,
  collateral_stale: 503,
  root_secret_missing: 503,
  log_unavailable: 503,
  overloaded: 503,
  shutting_down: 503,
  internal: 500,
} as const

/** A rejection that the caller sees. `details` goes only to our log. */
export class EnclaveError extends ServiceError<keyof typeof errorStatus> {
  override name = 'EnclaveError'
}
