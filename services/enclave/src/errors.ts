import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol/core'

/** Why a call to the enclave was refused as a whole. */
export type EnclaveErrorCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'body_too_large'
  | 'not_found'
  | 'method_not_allowed'
  | 'caller_signature_invalid'
  | 'caller_clock_skew'
  | 'caller_unknown'
  | 'caller_not_allowed'
  | 'id_token_invalid'
  | 'id_token_replayed'
  | 'grant_invalid'
  | 'session_expired'
  | 'invalid_policy'
  | 'policy_not_supported'
  | 'challenge_unknown'
  | 'transfer_refused'
  | 'share_refused'
  | 'log_refused'
  | 'boot_unknown'
  | 'issuer_unavailable'
  | 'time_unknown'
  | 'quote_unavailable'
  | 'collateral_stale'
  | 'root_secret_missing'
  | 'log_unavailable'
  | 'overloaded'
  | 'shutting_down'
  | 'internal'

/** A refusal that the caller sees; `details` is for our log only. */
export class EnclaveError extends ServiceError<EnclaveErrorCode> {
  override name = 'EnclaveError'
  constructor(code: EnclaveErrorCode, message: string, options?: ServiceErrorOptions) {
    super(code, message, options)
  }
}
