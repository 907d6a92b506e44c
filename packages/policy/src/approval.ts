import { type Approval, approvals, toCanonicalJson } from '@countersign/protocol/core'
import { parse } from '@countersign/protocol/schema'
import { sha256 } from '@noble/hashes/sha2.js'
import { VaultPolicyError } from './errors.ts'

/**
 * Narrows to a list of approvals in canonical form: exactly these members, hex in lower case, approvers in ascending order without
 * duplicates.
 * Doesn't check whether an approval is valid.
 */
export function assertApprovals(value: unknown): asserts value is Approval[] {
  // Details never repeat the caller's values.
  parse(approvals, value, (details) => new VaultPolicyError('approvals_malformed', 'malformed approvals', { details }))
}

/** SHA-256 of the canonical JSON of a list, for statements. A statement without approvals has null instead. */
export function hashApprovals(approvals: readonly Approval[]): Uint8Array<ArrayBuffer> {
  assertApprovals(approvals)
  return sha256(toCanonicalJson(approvals))
}
