import type { ApprovalReason } from '@countersign/protocol/core'
import type { ApprovalsVerdict } from './checkApprovals.ts'

const REASONS: Readonly<Record<ApprovalReason, string>> = {
  approver_unknown: 'the vault has no such approver',
  approval_expired: 'it had ended',
  approval_too_long: 'it holds for more than 24 hours',
  client_data_malformed: 'what the browser signed cannot be read',
  client_data_type: 'it is not an assertion of a passkey',
  challenge_mismatch: 'it is for something else than this signature',
  origin_not_allowed: 'it was given on a page that the vault does not name',
  cross_origin: 'it was given in a frame of another site',
  authenticator_data_malformed: 'what the passkey signed cannot be read',
  rp_id_mismatch: 'it was given for another domain',
  user_not_present: 'nobody was there to approve',
  user_not_verified: 'the passkey did not verify its user',
  authenticator_data_extended: 'what the passkey signed has members that no approval has',
  backup_state_impossible: 'what the passkey says of its backup cannot be',
  approval_signature_invalid: 'it is not signed with the approver’s passkey',
}

/** Why approvals do not suffice, in a sentence. */
export function describeApprovalsFault(verdict: ApprovalsVerdict & { valid: false }): string {
  if ('index' in verdict) return `Approval ${verdict.index + 1} does not hold: ${REASONS[verdict.reason]}.`
  if (verdict.reason === 'approvals_malformed') return 'The approvals are not in their one form.'
  return `Approvals are missing: ${verdict.missing} more ${verdict.missing === 1 ? 'is' : 'are'} needed.`
}
