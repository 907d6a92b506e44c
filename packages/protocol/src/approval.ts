import { checked, either, hex, hexUpTo, type Infer, list, literal, natural, object } from './schema.ts'

/* What a passkey says about one signature of a vault, and why that may not count. `@countersign/policy` checks them. */

/** Without credential data and extensions, authenticator data have one length: WebAuthn §6.1. */
export const AUTHENTICATOR_DATA_BYTES = 37
/** Browsers write some 150 bytes, and may add members. */
export const MAX_CLIENT_DATA_BYTES = 2048
/** SEQUENCE, and two integers of at most 33 bytes. */
const MAX_SIGNATURE_BYTES = 72

/** A WebAuthn assertion over the challenge of one signature, with who made it. Bytes are lower-case hex without a prefix. */
export const approval = object({
  /** Index among the policy's approvers. */
  approver: natural,
  authenticatorData: hex(AUTHENTICATOR_DATA_BYTES),
  clientDataJSON: hexUpTo(MAX_CLIENT_DATA_BYTES),
  /** ES256, in DER. */
  signature: hexUpTo(MAX_SIGNATURE_BYTES),
  /** When it ends, in milliseconds since 1970: part of the challenge. */
  expiresMs: natural,
})
export type Approval = Infer<typeof approval>

/** By ascending index of their approvers, each once. */
export const approvals = checked(list(approval), (given) =>
  given.every(({ approver }, index) => index === 0 || approver > (given[index - 1] as Approval).approver),
)

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
