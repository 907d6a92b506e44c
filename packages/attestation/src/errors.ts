import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol/core'

/*
 * ServiceError
 * ├── QuoteError    the evidence is not genuine: no policy may accept it
 * └── PolicyError   the evidence is genuine, but of a machine, code or state that the reader does not trust
 */

/** Why a TDX quote or an SNP report, with its collateral or certificates, is not genuine. */
export type QuoteErrorCode =
  | 'quote_malformed'
  | 'quote_unsupported'
  | 'quote_signature_invalid'
  | 'collateral_malformed'
  | 'certificate_malformed'
  | 'certificate_chain_invalid'
  | 'certificate_not_in_date'
  | 'certificate_revoked'
  | 'root_not_trusted'
  | 'crl_malformed'
  | 'crl_signature_invalid'
  | 'crl_expired'
  | 'crl_not_yet_valid'
  | 'crl_without_next_update'
  | 'tcb_info_malformed'
  | 'tcb_info_signature_invalid'
  | 'tcb_info_not_in_date'
  | 'tcb_info_mismatch'
  | 'qe_identity_malformed'
  | 'qe_identity_signature_invalid'
  | 'qe_identity_not_in_date'
  | 'qe_identity_mismatch'
  | 'qe_report_signature_invalid'
  | 'qe_report_data_mismatch'
  | 'tdx_module_mismatch'
  | 'tcb_not_supported'
  | 'tcb_revoked'
  | 'report_malformed'
  | 'report_unsupported'
  | 'report_signature_invalid'
  | 'report_tcb_mismatch'
  | 'report_chip_mismatch'
  | 'event_log_malformed'
  | 'event_log_mismatch'

/** Why genuine evidence is not accepted. */
export type PolicyErrorCode =
  | 'policy_invalid'
  | 'debug_enabled'
  | 'sept_ve_disable_clear'
  | 'attributes_not_allowed'
  | 'service_td_bound'
  | 'trailing_bytes'
  | 'tcb_status_not_accepted'
  | 'tcb_evaluation_too_old'
  | 'platform_not_allowed'
  | 'measurement_not_allowed'
  | 'event_not_allowed'
  | 'report_data_mismatch'
  | 'migration_enabled'
  | 'vmpl_not_allowed'
  | 'signing_key_not_allowed'
  | 'tcb_too_old'
  | 'alias_check_missing'
  | 'chip_not_listed'
  | 'chip_not_named'
  | 'chip_not_allowed'

/** The evidence is forged, damaged, stale or unsupported. Distrust it: no policy can repair it. */
export class QuoteError extends ServiceError<QuoteErrorCode> {
  override name = 'QuoteError'
}

/** A register or a run-time event that differs from the policy. Values are lower-case hex; `found` is empty if the event is missing. */
export type Difference = { name: string; expected: readonly string[]; found: readonly string[] }

/** The evidence is genuine, but it does not satisfy the reader's policy. */
export class PolicyError extends ServiceError<PolicyErrorCode> {
  override name = 'PolicyError'
  /** For `measurement_not_allowed` and `event_not_allowed`: each register or event that differs. */
  readonly differences: readonly Difference[] | undefined

  constructor(
    code: PolicyErrorCode,
    message: string,
    { differences, ...options }: ServiceErrorOptions & { differences?: readonly Difference[] } = {},
  ) {
    super(code, message, differences === undefined ? options : { ...options, details: describe(differences) })
    this.differences = differences
  }
}

function describe(differences: readonly Difference[]): string {
  const list = (values: readonly string[]) => values.join(' or ') || 'nothing'
  return differences
    .map(({ name, expected, found }) => `${name}: expected ${list(expected)}, found ${list(found)}`)
    .join('; ')
}
