import { canSignOnChains, canTellTime, type Policy, type Rule, type SignedChains } from '@countersign/policy'
import type { EntropySetting } from '@countersign/protocol'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError } from '../errors.ts'

/** A request to sign a transaction at its largest, without data and approvals. */
const REQUEST_BYTES = 1_024
/** Browsers write some 150 bytes of client data, in which the longest text is the origin. All of it is hex. */
const APPROVAL_BYTES = 1_024

export type SignableTerms = {
  /** Whose samples this service signs with. */
  entropySources: readonly EntropySetting[]
  /** For which chains it signs. */
  chains: SignedChains
}

/**
 * Refuses a policy with something that this service could never sign: what is sent to the vault's address would be locked in. Throws
 * `invalid_policy`.
 */
export function assertSignable(policy: Policy, { entropySources, chains }: SignableTerms): void {
  if (!canTellTime(policy, entropySources)) throw unsignable('time names no source that this service takes samples of')
  for (const [index, rule] of policy.rules.entries()) {
    if (!canSignOnChains(rule, chains)) throw unsignable(`rules[${index}]: this service does not sign for its chains`)
    if (countBodyBytes(rule) > MAX_BODY_BYTES) {
      throw unsignable(`rules[${index}].words: a transaction with so many does not fit into a request`)
    }
  }
}

/** Of a request for what a rule allows, with the approvals that it asks for. */
function countBodyBytes(rule: Rule): number {
  const words = rule.kind === 'transaction' ? (rule.words ?? 0) : 0
  // `0x`, the selector and the words, in hex.
  return REQUEST_BYTES + rule.approvals * APPROVAL_BYTES + 2 + 2 * (4 + 32 * words)
}

function unsignable(details: string) {
  return new CoordinatorError('invalid_policy', 'this service could never sign for the vault', { details })
}
