import { checked, either, hex, hexUpTo, type Infer, list, natural, object } from './schema.ts'

/* The WebAuthn assertion with which a passkey approves one signature of a vault. `@countersign/policy` checks it. */

/** The fixed length of authenticator data without credential data and extensions: WebAuthn §6.1. */
export const AUTHENTICATOR_DATA_BYTES = 37
/** Browsers write some 150 bytes, and may add members. */
export const MAX_CLIENT_DATA_BYTES = 2048
/** DER: a SEQUENCE of two integers of at most 33 bytes. */
const MAX_SIGNATURE_BYTES = 72

const approved = {
  /** Index among the policy's approvers. */
  approver: natural,
  /** When the approval expires, in milliseconds since 1970. Part of the challenge. */
  expiresMs: natural,
}

/** A WebAuthn assertion over the challenge of one signature, with its approver. Bytes are lower-case hex without a prefix. */
const passkeyApproval = object({
  ...approved,
  authenticatorData: hex(AUTHENTICATOR_DATA_BYTES),
  clientDataJSON: hexUpTo(MAX_CLIENT_DATA_BYTES),
  /** ES256, in DER. */
  signature: hexUpTo(MAX_SIGNATURE_BYTES),
})
export type PasskeyApproval = Infer<typeof passkeyApproval>

/** The same by the key of a program: Ed25519. */
const keyApproval = object({ ...approved, signature: hex(64) })
export type KeyApproval = Infer<typeof keyApproval>

export const approval = either(passkeyApproval, keyApproval)
export type Approval = Infer<typeof approval>

/** In ascending order of `approver`, without duplicates. */
export const approvals = checked(list(approval), (given) =>
  given.every(({ approver }, index) => index === 0 || approver > (given[index - 1] as Approval).approver),
)
