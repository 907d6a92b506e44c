import { checkPolicy, describeRefusal, type Policy, type PolicyRequest, type TimedSample } from '@countersign/policy'
import type { OffChainContent, TxMetadata } from '@countersign/protocol'
import { createVaultError } from './errors.ts'

/** What a vault is asked to sign. */
export type VaultContent = { kind: 'transaction'; content: TxMetadata } | OffChainContent

/**
 * How many approvals a policy asks for; throws `policy_refused` where no rule allows the request. It is the code that decides in the
 * enclave, but for the time: when a schedule lets a nonce through, only the service's sample says.
 */
export function checkRequest(policy: Policy, asked: VaultContent): number {
  const verdict = checkPolicy(policy, toPolicyRequest(policy, asked))
  if (verdict.allowed) return verdict.approvals
  const details = describeRefusal(policy, verdict).join(' ')
  throw createVaultError('policy_refused', 'the rules of the vault do not allow this', { details })
}

export function approvalsMissing(missing: number) {
  const details = missing === 1 ? '1 more approval is needed' : `${missing} more approvals are needed`
  return createVaultError('approvals_missing', 'more approvals are needed', { details })
}

function toPolicyRequest({ time: [source] = [] }: Policy, asked: VaultContent): PolicyRequest {
  if (asked.kind !== 'transaction') return asked
  const { kind, content: txMetadata } = asked
  // A sample at the end of all days: the clock of this device decides nothing.
  const sample: TimedSample | undefined = source && { source, timeMs: Number.MAX_SAFE_INTEGER }
  return { kind, txMetadata, ...(sample && { sample }) }
}
