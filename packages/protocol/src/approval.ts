import { checked, hex, hexUpTo, type Infer, list, natural, object } from './schema.ts'

/* What a passkey says about one signature of a vault. `@countersign/policy` checks it. */

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
