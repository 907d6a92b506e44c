import {
  type Approval,
  assertApprovals,
  checkApprovals,
  describeApprovalsFault,
  VaultPolicyError,
  verifyEs256,
} from '@countersign/policy'
import { fromHex } from '@countersign/protocol'
import type { Prepared } from '@countersign/sdk/vaults'

/* How a payment goes to the device of an approver, and the approval comes back: as texts that people copy. */

/** The page that shows a payment and asks for an approval. It is all in the fragment, which no server gets. */
export function toApproveUrl(prepared: Prepared, origin: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify(prepared))
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return `${origin}/approve#${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** What a fragment, a whole link or the text of a file says; undefined where a link cannot be read. */
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

/** Reads an approval of this very payment, or says why it does not count. */
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
  const { policy, address: vaultAddress, kind, digest } = prepared
  const verdict = checkApprovals(
    { verifyEs256 },
    { policy, vaultAddress, kind, digest: fromHex(digest.slice(2)), approvals: list, required: 1, nowMs },
  )
  if (!verdict.valid) return { fault: describeApprovalsFault(verdict) }
  return { approval: (list as Approval[])[0] as Approval }
}

/** With one more, in the order of approvers. The same approver again replaces the earlier approval. */
export function withApproval(approvals: readonly Approval[], added: Approval): Approval[] {
  const others = approvals.filter(({ approver }) => approver !== added.approver)
  return [...others, added].toSorted((left, right) => left.approver - right.approver)
}
