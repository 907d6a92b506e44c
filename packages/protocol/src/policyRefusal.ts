import { either, type Infer, list, literal, natural, nullable, object } from './schema.ts'

/* Why a vault's rules don't allow a request. `checkPolicy` of `@countersign/policy` decides. */

/** Reasons that don't depend on the rules. */
const requestReason = literal(
  /** A kind that no vault signs, a missing or extra member, or an undecodable value. */
  'request_malformed',
  /** The policy has no rule with the requested index. */
  'rule_unknown',
  /** The policy has a schedule, and the request has no sample for the time. */
  'sample_missing',
  /** The sample's source is not in the policy. */
  'sample_source_not_allowed',
  /** The schedule does not allow this nonce yet. */
  'nonce_not_due',
)
export type RequestReason = Infer<typeof requestReason>

/** Why one rule does not match a request. */
const ruleReason = either(
  object({
    code: literal(
      'kind_not_allowed',
      'chain_not_allowed',
      'recipient_not_allowed',
      'value_above_max',
      'fee_above_max',
      /** The rule allows no data. */
      'data_not_empty',
      /** Not a selector followed by exactly as many words as the rule lists. */
      'data_length',
      'selector_not_allowed',
      'domain_not_allowed',
      /** No rule allows a domain with a salt. */
      'domain_has_salt',
      'primary_type_not_allowed',
      /** The payment has no form that the rule allows. */
      'form_not_allowed',
      /** Another address would pay. */
      'payer_not_vault',
      'spender_not_allowed',
      /** Valid from a later time, or for more than an hour. */
      'validity_not_allowed',
      'asset_without_budget',
    ),
  }),
  object({
    /** The word has the wrong type, is not among the values, or is above the maximum. */
    code: literal('argument_undecodable', 'argument_not_allowed', 'argument_above_max'),
    /** The index of the word. */
    at: natural,
  }),
)
export type RuleReason = Infer<typeof ruleReason>

/** Why a rule, by its index in the policy, doesn't match. No reason if it does. */
const ruleVerdict = object({ rule: natural, reasons: list(ruleReason) })
export type RuleVerdict = Infer<typeof ruleVerdict>

export const policyRefusal = object({
  /** Reasons about the request as a whole. */
  reasons: list(requestReason),
  /** One verdict per rule of the policy. Empty for a malformed request. */
  rules: list(ruleVerdict),
  /** The rule that came nearest. Null for a malformed request. */
  nearest: nullable(natural),
})
export type PolicyRefusal = Infer<typeof policyRefusal>
