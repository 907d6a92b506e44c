import { either, type Infer, list, literal, natural, nullable, object } from './schema.ts'

/* Why the rules of a vault do not allow a request: `checkPolicy` of `@countersign/policy` decides. */

/** Why a request is refused whatever the rules say. */
const requestReason = literal(
  /** It is of no kind that a vault signs, has a member too many or too few, or cannot be decoded. */
  'request_malformed',
  /** The policy has a schedule, and no sample tells the time. */
  'sample_missing',
  /** The sample is not of a source that the policy names. */
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
      /** Not a selector with exactly as many words as the rule says. */
      'data_length',
      'selector_not_allowed',
      'domain_not_allowed',
      /** No rule allows a domain with a salt. */
      'domain_has_salt',
      'primary_type_not_allowed',
    ),
  }),
  object({
    /** The word is not of its type, not among the values, or above the maximum. */
    code: literal('argument_undecodable', 'argument_not_allowed', 'argument_above_max'),
    /** Which word. */
    at: natural,
  }),
)
export type RuleReason = Infer<typeof ruleReason>

/** Why a rule, by its index in the policy, does not match. None where it does. */
const ruleVerdict = object({ rule: natural, reasons: list(ruleReason) })
export type RuleVerdict = Infer<typeof ruleVerdict>

export const policyRefusal = object({
  /** Of the request as a whole. */
  reasons: list(requestReason),
  /** One for each rule of the policy; none for a request that cannot be read. */
  rules: list(ruleVerdict),
  /** The rule that came nearest; null for a request that cannot be read. */
  nearest: nullable(natural),
})
export type PolicyRefusal = Infer<typeof policyRefusal>
