import {
  type Approval,
  assertApprovals,
  checkApprovals,
  describeApprovalsFault,
  VaultPolicyError,
  verifyEs256,
} from '@countersign/policy'
import { fromHex, verifyEd25519 } from '@countersign/protocol'
import type { Prepared } from '@countersign/sdk/vaults'

/* A payment travels to an approver's device, and the approval back, as text that people copy. */

/** The link for an approver. The payment is in the fragment, which no server receives. */
export function toApproveUrl(prepared: Prepared, origin: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify(prepared))
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return `${origin}/approve#${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** Reads a fragment, a whole link or a file's text. Returns undefined for a malformed link. */
export function readPreparedText(text: string): string | undefined {
  const trimmed = text.trim()
  if (trimmed.startsWith('{')) return trimmed
  const encoded = trimmed.slice(trimmed.indexOf('#') + 1)
  try {
    const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (one) => one.charCodeAt(0)))
  } catch {
    return undefined
  }
}

/** Parses and checks an approval of this payment, or returns an error. */
export function parseApproval(
  text: string,
  prepared: Prepared,
  nowMs: number,
): { approval: Approval } | { fault: string } {
  let list: unknown
  try {
    list = [JSON.parse(text)]
    assertApprovals(list)
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof VaultPolicyError)) throw error
    return { fault: 'This isn’t a complete approval. Copy the whole text.' }
  }
  const { policy, address: vaultAddress, rule, kind, digest } = prepared
  const approved = { policy, vaultAddress, rule, kind, digest: fromHex(digest.slice(2)) }
  const verdict = checkApprovals({ verifyEs256, verifyEd25519 }, { ...approved, approvals: list, required: 1, nowMs })
  if (!verdict.valid) return { fault: describeApprovalsFault(verdict) }
  return { approval: (list as Approval[])[0] as Approval }
}

/** Adds an approval in the order of approvers. Replaces an earlier one of the same approver. */
export function withApproval(approvals: readonly Approval[], added: Approval): Approval[] {
  const others = approvals.filter(({ approver }) => approver !== added.approver)
  return [...others, added].toSorted((left, right) => left.approver - right.approver)
}
