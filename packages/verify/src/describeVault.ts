import { type Approval, assertApprovals, describePolicy, type Policy } from '@countersign/policy'
import { type OpeningContent, ServiceError } from '@countersign/protocol'
import { type AnyReceipt, ATTESTATION_V2 } from '@countersign/receipt'
import type { Fact } from './contentWords.ts'

/**
 * The rules of the vault that signed, and who approved; nothing for a wallet without rules. `policy` is there where it is the one in
 * the statement. Whether it allows what was signed, and the approvals hold, is for the steps to say.
 */
export function describeVault(shown: {
  receipt: AnyReceipt
  content: OpeningContent | undefined
  policy?: Policy | undefined
}): Fact[] {
  const { receipt, content, policy } = shown
  if (receipt.version !== ATTESTATION_V2 || receipt.signer.statement.policy === null) return []
  const hash = { name: 'Policy', value: receipt.signer.statement.policy }
  if (policy === undefined) return [hash]
  const { summary, rules, notes } = describePolicy(policy)
  return [
    { name: 'Rules', value: summary },
    ...rules.map((value, index) => ({ name: `Rule ${index + 1}`, value })),
    ...notes.map((value) => ({ name: 'Note', value })),
    ...describeApprovers(policy, receipt.kind === 'off-chain' ? content?.approvals : receipt.approvals),
    hash,
  ]
}

/** By their places among the approvers, from 1 on. Nothing is said of a list that cannot be read. */
function describeApprovers({ approvers }: Policy, approvals: readonly unknown[] = []): Fact[] {
  return readApprovals(approvals).map(({ approver }) => {
    const where = approvers[approver]?.rpId
    const value = `passkey ${approver + 1} of ${approvers.length}${where === undefined ? '' : `, at ${where}`}`
    return { name: 'Approved by', value }
  })
}

function readApprovals(approvals: readonly unknown[]): readonly Approval[] {
  try {
    const list = [...approvals]
    assertApprovals(list)
    return list
  } catch (error) {
    if (error instanceof ServiceError) return []
    throw error
  }
}
