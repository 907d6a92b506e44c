import type { ApprovalReason } from '@countersign/protocol/core'
import type { ApprovalsVerdict } from './checkApprovals.ts'

const REASONS: Readonly<Record<ApprovalReason, string>> = {
  approver_revoked: 'the key was revoked',
  approver_unknown: 'the vault has no such approver',
  approver_not_allowed: 'the rule does not list this approver, or the approver is of another type',
  approval_expired: 'it had expired',
  approval_too_long: 'it is valid for too long',
  client_data_malformed: 'the browser’s data is malformed',
  client_data_type: 'it is not a passkey assertion',
  challenge_mismatch: 'it is for another signature',
  origin_not_allowed: 'it was given on a page that the vault does not name',
  cross_origin: 'it was given in another site’s frame',
  authenticator_data_malformed: 'the passkey’s data is malformed',
  rp_id_mismatch: 'it was given for another domain',
  user_not_present: 'the user was not present',
  user_not_verified: 'the passkey did not verify its user',
  authenticator_data_extended: 'the passkey’s data has members that are not allowed in an approval',
  backup_state_impossible: 'the passkey’s backup flags contradict each other',
  approval_signature_invalid: 'the approver’s key did not sign it',
}

/** Explains in a sentence why approvals are not sufficient. */
export function describeApprovalsFault(verdict: ApprovalsVerdict & { valid: false }): string {
  if ('index' in verdict) return `Approval ${verdict.index + 1} is invalid: ${REASONS[verdict.reason]}.`
  if (verdict.reason === 'approvals_malformed') return 'The approvals are malformed.'
  return `Approvals are missing: ${verdict.missing} more ${verdict.missing === 1 ? 'is' : 'are'} needed.`
}
