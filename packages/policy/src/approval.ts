import { type Approval, isHex, isNatural, readMembers, toCanonicalJson } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { VaultPolicyError } from './errors.ts'

/** Without credential data and extensions, authenticator data have one length: WebAuthn §6.1. */
export const AUTHENTICATOR_DATA_BYTES = 37
/** Browsers write some 150 bytes, and may add members. */
export const MAX_CLIENT_DATA_BYTES = 2048
/** SEQUENCE, and two integers of at most 33 bytes. */
const MAX_SIGNATURE_BYTES = 72

const MEMBERS = ['approver', 'authenticatorData', 'clientDataJSON', 'signature', 'expiresMs'] as const

/**
 * Narrows to a list of approvals in its one form: exactly these members, hex in lower case, approvers in ascending order and each
 * once. Whether an approval is valid is another question.
 */
export function assertApprovals(value: unknown): asserts value is Approval[] {
  if (!Array.isArray(value)) throw malformed('not a list')
  let previous = -1
  for (const [index, item] of value.entries()) {
    const fail = (details: string) => malformed(`[${index}]: ${details}`)
    const approval = readMembers(item, { required: MEMBERS }, fail)
    const { approver, authenticatorData, clientDataJSON, signature, expiresMs } = approval
    if (!isNatural(approver) || !isNatural(expiresMs)) throw fail('approver or expiresMs is not a natural number')
    if (approver <= previous) throw fail('approver is not after the one before')
    previous = approver
    if (!isHex(authenticatorData, AUTHENTICATOR_DATA_BYTES)) throw fail('authenticatorData')
    if (!isHex(clientDataJSON) || clientDataJSON.length > 2 * MAX_CLIENT_DATA_BYTES) throw fail('clientDataJSON')
    if (!isHex(signature) || signature.length > 2 * MAX_SIGNATURE_BYTES) throw fail('signature')
  }
}

/** SHA-256 of a list's canonical JSON: how a statement names its approvals. A signature without any has null instead. */
export function hashApprovals(approvals: readonly Approval[]): Uint8Array<ArrayBuffer> {
  assertApprovals(approvals)
  return sha256(toCanonicalJson(approvals))
}

/** Details repeat nothing of what a caller sent. */
function malformed(details: string) {
  return new VaultPolicyError('approvals_malformed', 'malformed approvals', { details })
}
