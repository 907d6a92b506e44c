/* Why an approval of a vault may not count. `@countersign/policy` checks it. */

const clientDataReasons = [
  /** Not one JSON object that every reader reads alike. */
  'client_data_malformed',
  'client_data_type',
  /** Of another vault, policy, kind, digest or expiry. */
  'challenge_mismatch',
  'origin_not_allowed',
  /** The page was in a frame of another site. */
  'cross_origin',
] as const
export type ClientDataReason = (typeof clientDataReasons)[number]

const authenticatorDataReasons = [
  /** Not of the one length that they have without credential data and extensions. */
  'authenticator_data_malformed',
  'rp_id_mismatch',
  'user_not_present',
  'user_not_verified',
  /** Credential data or extensions, which an approval does not have. */
  'authenticator_data_extended',
  /** Backed up, though not eligible for backup: no authenticator says so. */
  'backup_state_impossible',
] as const
export type AuthenticatorDataReason = (typeof authenticatorDataReasons)[number]

export const approvalReasons = [
  'approver_unknown',
  'approval_expired',
  /** It ends more than 24 hours from now. */
  'approval_too_long',
  ...clientDataReasons,
  ...authenticatorDataReasons,
  /** Not ECDSA in DER, or not by this approver's key over these bytes. */
  'approval_signature_invalid',
] as const
/** Why one approval is not valid. */
export type ApprovalReason = (typeof approvalReasons)[number]
