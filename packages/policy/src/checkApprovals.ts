import {
  type Approval,
  type ApprovalKind,
  type ApprovalReason,
  computeApprovalChallenge,
  concatBytes,
  fromHex,
  type Hex,
  MAX_RULES,
  type PasskeyApproval,
  toAgentApprovalBytes,
  toCanonicalJson,
} from '@countersign/protocol/core'
import { p256 } from '@noble/curves/nist.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { assertApprovals } from './approval.ts'
import { checkAuthenticatorData } from './checkAuthenticatorData.ts'
import { checkClientData } from './checkClientData.ts'
import { fromDerSignature } from './derSignature.ts'
import type { Approver, Policy } from './policy.ts'

/** The longest time until an approval's expiry. */
export const MAX_APPROVAL_MS = 24 * 60 * 60 * 1000
/** The same for the key of a program. */
export const MAX_AGENT_APPROVAL_MS = 10 * 60 * 1000

export type ApprovalsVerdict =
  | { valid: true }
  | { valid: false; reason: 'approvals_malformed' }
  /** All approvals are valid, but more are needed. */
  | { valid: false; reason: 'approvals_missing'; missing: number }
  /** `index` is the position in the list. */
  | { valid: false; reason: ApprovalReason; index: number }

/**
 * Verifies an ES256 signature (r ‖ s, 64 bytes) over a message. A high s is valid. Node has a faster implementation than `verifyEs256`,
 * which runs anywhere.
 */
export type VerifyEs256 = (publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean

/** The implementations of the two signature algorithms. */
export type VerifySignatures = { verifyEs256: VerifyEs256; verifyEd25519: VerifyEs256 }

export type CheckApprovalsParameters = {
  /** A policy from `assertPolicy` or `parsePolicy`. */
  policy: Policy
  /** The hash of `policy`, if the caller has it. Computing it takes as long as all other checks except the signature. */
  policyHash?: Uint8Array | undefined
  vaultAddress: Hex
  /** The index of the rule that is to allow the request. */
  rule: number
  kind: ApprovalKind
  /** 32 bytes: the digest to sign, as hashed by the caller. */
  digest: Uint8Array
  approvals: unknown
  /** The number that the matching rule requires. */
  required: number
  /** The signing time, the later of clock and floor; for a receipt, its `signedAt`. */
  nowMs: number
}

/**
 * Whether enough approvers of a policy approve one signature. Every given approval must be valid, including those that are not needed: an
 * invalid one suggests that a page showed an approver something else.
 */
export function checkApprovals(deps: VerifySignatures, parameters: CheckApprovalsParameters): ApprovalsVerdict {
  const { policy, approvals, required } = parameters
  try {
    assertApprovals(approvals)
  } catch {
    return { valid: false, reason: 'approvals_malformed' }
  }
  let { policyHash } = parameters
  for (const [index, approval] of approvals.entries()) {
    policyHash ??= sha256(toCanonicalJson(policy))
    const reason = checkApproval(deps, { ...parameters, policyHash }, approval)
    if (reason !== undefined) return { valid: false, reason, index }
  }
  if (approvals.length >= required) return { valid: true }
  return { valid: false, reason: 'approvals_missing', missing: required - approvals.length }
}

function checkApproval(
  { verifyEs256, verifyEd25519 }: VerifySignatures,
  parameters: CheckApprovalsParameters & { policyHash: Uint8Array },
  approval: Approval,
): ApprovalReason | undefined {
  const { policy, policyHash, rule, kind, digest, nowMs } = parameters
  const { expiresMs } = approval
  const approver: Approver | undefined = policy.approvers[approval.approver]
  if (approver === undefined) return 'approver_unknown'
  // Any passkey may approve what belongs to no rule: a revocation.
  const listed = rule === MAX_RULES && approver.type === 'passkey' ? 'any' : (policy.rules[rule]?.approvers ?? [])
  if (listed !== 'any' && !listed.includes(approval.approver)) return 'approver_not_allowed'
  if (!(nowMs < expiresMs)) return 'approval_expired'
  const maxMs = approver.type === 'key' ? MAX_AGENT_APPROVAL_MS : MAX_APPROVAL_MS
  if (!(expiresMs <= nowMs + maxMs)) return 'approval_too_long'

  const vaultAddress = fromHex(parameters.vaultAddress.slice(2))
  const approved = { vaultAddress, policyHash, rule, kind, digest, expiresMs }
  if (approver.type === 'key') {
    if (isByPasskey(approval)) return 'approver_not_allowed'
    const isSigned = verifyEd25519(
      fromHex(approver.publicKey),
      fromHex(approval.signature),
      toAgentApprovalBytes(approved),
    )
    return isSigned ? undefined : 'approval_signature_invalid'
  }
  if (!isByPasskey(approval)) return 'approver_not_allowed'
  const challenge = computeApprovalChallenge(approved)
  const [authenticatorData, clientData] = [fromHex(approval.authenticatorData), fromHex(approval.clientDataJSON)]
  const reason =
    checkClientData(clientData, { challenge, origins: approver.origins }) ??
    checkAuthenticatorData(authenticatorData, approver.rpId)
  if (reason !== undefined) return reason

  // WebAuthn §7.2, steps 20 and 21: over the raw bytes, not over the parsed values.
  const signed = concatBytes(authenticatorData, sha256(clientData))
  const signature = fromDerSignature(fromHex(approval.signature))
  const isSigned = signature !== undefined && verifyEs256(fromHex(approver.publicKey), signature, signed)
  return isSigned ? undefined : 'approval_signature_invalid'
}

function isByPasskey(approval: Approval): approval is PasskeyApproval {
  return 'clientDataJSON' in approval
}

/** `VerifyEs256` for Node and browsers. Takes some milliseconds. */
export function verifyEs256(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  try {
    return p256.verify(signature, message, publicKey, { lowS: false, prehash: true })
  } catch {
    // r or s is out of range, or the key is not a point.
    return false
  }
}
