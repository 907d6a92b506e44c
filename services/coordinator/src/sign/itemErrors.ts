import { describeRefusal, type Policy } from '@countersign/policy'
import type { PolicyRefusal, SignItemError } from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { SignJob } from './job.ts'

/* Why an enclave or a vault does not sign. */

const codes: Record<SignItemError['error'], CoordinatorErrorCode> = {
  invalid_request: 'internal',
  invalid_tx_metadata: 'invalid_tx_metadata',
  message_too_large: 'message_too_large',
  invalid_message: 'invalid_message',
  invalid_typed_data: 'invalid_typed_data',
  authorization_not_allowed: 'authorization_not_allowed',
  digest_mismatch: 'digest_mismatch',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  key_binding_mismatch: 'key_binding_mismatch',
  quote_unavailable: 'enclave_unavailable',
  entropy_refused: 'entropy_unavailable',
  entropy_used: 'entropy_unavailable',
  entropy_memory_full: 'enclave_unavailable',
  policy_unknown: 'enclave_unavailable',
  policy_not_supported: 'policy_refused',
  policy_refused: 'policy_refused',
  approvals_missing: 'approvals_missing',
  approval_invalid: 'approval_invalid',
}

export function toItemError(result: SignItemError, { vault }: Pick<SignJob, 'vault'>): CoordinatorError {
  if (result.error === 'policy_refused' && vault !== undefined) {
    return isOnlyEarly(result.details) ? sampleTooEarly() : policyRefused(vault.rules, result.details)
  }
  if (result.error === 'approvals_missing') return approvalsMissing(result.missing)
  const details = result.error === 'approval_invalid' ? `approvals[${result.index}]: ${result.reason}` : result.error
  return new CoordinatorError(codes[result.error], 'the enclave refused to sign', { details })
}

/**
 * `assertAllowed` found the payment due by our clock. Samples are bought ahead, so the one sent may be older than the due time. A later
 * sample fixes it.
 */
function isOnlyEarly({ reasons, rules }: PolicyRefusal): boolean {
  return reasons.join() === 'nonce_not_due' && rules.some((rule) => rule.reasons.length === 0)
}

function sampleTooEarly() {
  const details = 'the schedule allows this transaction as soon as a sample proves the time'
  return new CoordinatorError('entropy_unavailable', 'no entropy sample is late enough', { details })
}

export function policyRefused(policy: Policy, { reasons, rules, nearest }: PolicyRefusal): CoordinatorError {
  const refusal = { reasons, rules, nearest }
  const details = describeRefusal(policy, { allowed: false, ...refusal }).join(' ')
  return new CoordinatorError('policy_refused', 'the rules of the vault do not allow this', { details, refusal })
}

export function approvalsMissing(missing: number): CoordinatorError {
  const details = missing === 1 ? '1 more approval is needed' : `${missing} more approvals are needed`
  return new CoordinatorError('approvals_missing', 'more approvals are needed', { details })
}
