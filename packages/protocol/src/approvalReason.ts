import { either, type Infer, literal } from './schema.ts'

/* Reasons why an approval is invalid. `@countersign/policy` checks approvals. */

const clientDataReason = literal(
  /** Not a JSON object, or ambiguous JSON such as duplicate members. */
  'client_data_malformed',
  'client_data_type',
  /** The challenge is for another vault, policy, kind, digest or expiry. */
  'challenge_mismatch',
  'origin_not_allowed',
  /** The page was in another site's frame. */
  'cross_origin',
)
export type ClientDataReason = Infer<typeof clientDataReason>

const authenticatorDataReason = literal(
  /** Not the fixed length of authenticator data without credential data and extensions. */
  'authenticator_data_malformed',
  'rp_id_mismatch',
  'user_not_present',
  'user_not_verified',
  /** Has credential data or extensions, which are not allowed in an approval. */
  'authenticator_data_extended',
  /** Backed up but not eligible for backup, which WebAuthn rules out. */
  'backup_state_impossible',
)
export type AuthenticatorDataReason = Infer<typeof authenticatorDataReason>

export const approvalReason = either(
  literal(
    'approver_unknown',
    /** The owner has revoked the approver's key. */
    'approver_revoked',
    /** The rule doesn't list this approver, or the approval is of another type than the approver. */
    'approver_not_allowed',
    'approval_expired',
    /** Expires more than 24 hours from now, or 10 minutes for the key of a program. */
    'approval_too_long',
    /** Not ECDSA in DER, or not this approver's signature of these bytes. */
    'approval_signature_invalid',
  ),
  clientDataReason,
  authenticatorDataReason,
)
export type ApprovalReason = Infer<typeof approvalReason>
