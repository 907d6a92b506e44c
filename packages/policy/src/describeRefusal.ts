import { nameChain, type RequestReason, type RuleReason } from '@countersign/protocol/core'
import type { PolicyVerdict } from './checkPolicy.ts'
import type { Policy, Rule, TransactionRule } from './policy.ts'
import { toApprovals, toCapAmount } from './policyWords.ts'

/** Explains in sentences why a policy doesn't allow a request: reasons about the whole request first, then those of the nearest rule. */
export function describeRefusal(policy: Policy, verdict: PolicyVerdict & { allowed: false }): string[] {
  const { reasons, rules, nearest } = verdict
  const rule = nearest === null ? undefined : policy.rules[nearest]
  const ofRule = rules.find((one) => one.rule === nearest)?.reasons ?? []
  return [
    ...reasons.map(describeRequestReason),
    ...(rule === undefined ? [] : ofRule.map((reason) => describeRuleReason(policy, rule, reason))),
  ]
}

function describeRequestReason(reason: RequestReason): string {
  switch (reason) {
    case 'request_malformed':
      return 'The request is malformed, or is of a kind that a vault does not sign.'
    case 'rule_unknown':
      return 'The vault has no rule with this number.'
    case 'sample_missing':
      return 'The vault has a schedule, but the request has no sample for the time.'
    case 'sample_source_not_allowed':
      return 'The vault does not name the source of the sample.'
    case 'nonce_not_due':
      return 'The schedule does not allow this transaction yet.'
  }
}

function describeRuleReason(policy: Policy, rule: Rule, reason: RuleReason): string {
  switch (reason.code) {
    case 'kind_not_allowed':
      return 'The rule is for another kind of signature.'
    case 'chain_not_allowed':
      return `The chain is not ${describeChains(rule)}.`
    case 'recipient_not_allowed':
      return 'The recipient is not on the list.'
    case 'value_above_max':
      return `The amount is above the limit of ${describeCap(policy, rule, 'maxValueWei')}.`
    case 'fee_above_max':
      return `The fee can be above the limit of ${describeCap(policy, rule, 'maxFeeWei')}.`
    case 'data_not_empty':
      return 'Only payments without data are allowed.'
    case 'data_length':
      return 'The data does not have the allowed length.'
    case 'selector_not_allowed':
      return 'The function is not on the list.'
    case 'argument_undecodable':
      return `Word ${reason.at + 1} of the call does not have its type.`
    case 'argument_not_allowed':
      return `Word ${reason.at + 1} of the call is not one of the allowed values.`
    case 'argument_above_max':
      return `Word ${reason.at + 1} of the call is above its maximum${withApproval(policy, rule)}.`
    case 'domain_not_allowed':
      return 'The domain of the typed data is not on the list.'
    case 'domain_has_salt':
      return 'Typed data with a salt in its domain is never allowed.'
    case 'primary_type_not_allowed':
      return 'The type of the typed data is not on the list.'
    case 'form_not_allowed':
      return 'It is not a payment in a form that the rule allows.'
    case 'payer_not_vault':
      return 'The vault is not the payer.'
    case 'spender_not_allowed':
      return 'The contract that would use the permit is not on the list.'
    case 'validity_not_allowed':
      return 'The authorization must be valid now and end within an hour.'
    case 'asset_without_budget':
      return 'The vault has no budget for this coin or token.'
  }
}

function describeChains(rule: Rule): string {
  const chainIds = 'chainIds' in rule && rule.chainIds !== 'any' ? rule.chainIds : []
  return chainIds.map(nameChain).join(' or ')
}

function describeCap(policy: Policy, rule: Rule, cap: 'maxValueWei' | 'maxFeeWei'): string {
  const transactionRule = rule as TransactionRule
  return `${toCapAmount(transactionRule[cap], transactionRule)}${withApproval(policy, rule)}`
}

/** The limit belongs to one rule. Another rule may allow more with more approvals. */
function withApproval(policy: Policy, rule: Rule): string {
  return rule.approvals === 0 ? '' : ` with ${toApprovals(rule, policy)}`
}
