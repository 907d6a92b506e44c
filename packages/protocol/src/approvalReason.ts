import { either, type Infer, literal } from './schema.ts'

/* Why an approval of a vault may not count. `@countersign/policy` checks it. */

const clientDataReason = literal(
  /** Not one JSON object that every reader reads alike. */
  'client_data_malformed',
  'client_data_type',
  /** Of another vault, policy, kind, digest or expiry. */
  'challenge_mismatch',
  'origin_not_allowed',
  /** The page was in a frame of another site. */
  'cross_origin',
)
export type ClientDataReason = Infer<typeof clientDataReason>

const authenticatorDataReason = literal(
  /** Not of the one length that they have without credential data and extensions. */
  'authenticator_data_malformed',
  'rp_id_mismatch',
  'user_not_present',
  'user_not_verified',
  /** Credential data or extensions, which an approval does not have. */
  'authenticator_data_extended',
  /** Backed up, though not eligible for backup: no authenticator says so. */
  'backup_state_impossible',
)
export type AuthenticatorDataReason = Infer<typeof authenticatorDataReason>

/** Why one approval is not valid. */
export const approvalReason = either(
  literal(
    'approver_unknown',
    'approval_expired',
    /** It ends more than 24 hours from now. */
    'approval_too_long',
    /** Not ECDSA in DER, or not by this approver's key over these bytes. */
    'approval_signature_invalid',
  ),
  clientDataReason,
  authenticatorDataReason,
)
export type ApprovalReason = Infer<typeof approvalReason>
