import { type Approver, createPolicy, VaultPolicyError } from '@countersign/policy'

/** Reads a passkey as the page of another device shows it. Whatever a policy would not take is refused here, before there is a policy. */
export function parseApprover(text: string): { approver: Approver } | { fault: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { fault: 'This is not the text of a passkey. Copy all of it.' }
  }
  try {
    const policy = createPolicy({
      ...{ version: 1, log: null, rules: [{ kind: 'message', approvals: 1 }] },
      approvers: [value as Approver],
    })
    return { approver: policy.approvers[0] as Approver }
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    return { fault: 'This is not a passkey that can approve. Copy all of what the other device shows.' }
  }
}
