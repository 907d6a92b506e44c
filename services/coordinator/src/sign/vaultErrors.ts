import { describeRefusal, type Policy } from '@countersign/policy'
import type { PolicyRefusal } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'

/* Why a vault does not sign, in words for people. */

export function policyRefused(policy: Policy, { reasons, rules, nearest }: PolicyRefusal): CoordinatorError {
  const refusal = { reasons, rules, nearest }
  const details = describeRefusal(policy, { allowed: false, ...refusal }).join(' ')
  return new CoordinatorError('policy_refused', 'the rules of the vault do not allow this', { details, refusal })
}

export function approvalsMissing(missing: number): CoordinatorError {
  const details = missing === 1 ? '1 more approval is needed' : `${missing} more approvals are needed`
  return new CoordinatorError('approvals_missing', 'more approvals are needed', { details })
}
