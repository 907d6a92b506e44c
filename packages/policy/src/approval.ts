import { type Approval, approvals, toCanonicalJson } from '@countersign/protocol/core'
import { parse } from '@countersign/protocol/schema'
import { sha256 } from '@noble/hashes/sha2.js'
import { VaultPolicyError } from './errors.ts'

/**
 * Narrows to a list of approvals in its one form: exactly these members, hex in lower case, approvers in ascending order and each
 * once. Whether an approval is valid is another question.
 */
export function assertApprovals(value: unknown): asserts value is Approval[] {
  // Details repeat nothing of what a caller sent.
  parse(approvals, value, (details) => new VaultPolicyError('approvals_malformed', 'malformed approvals', { details }))
}

/** SHA-256 of a list's canonical JSON: how a statement names its approvals. A signature without any has null instead. */
export function hashApprovals(approvals: readonly Approval[]): Uint8Array<ArrayBuffer> {
  assertApprovals(approvals)
  return sha256(toCanonicalJson(approvals))
}
