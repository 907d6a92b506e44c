import {
  type Approver,
  createPolicy,
  type Policy,
  type PolicyLog,
  type Rule,
  type SpendRule,
  X402_SPENDERS,
} from '@countersign/policy'
import type { Hex } from '@countersign/sdk'

export type TemplateName = 'approval' | 'limit' | 'list' | 'budget'

/** The parsed form. */
export type Terms = {
  template: TemplateName
  /** Per payment without approval. Null for no limit. */
  limitWei: bigint | null
  /** Maximum network fee of a payment without approval. */
  feeWei: bigint
  /** Null for any. */
  recipients: readonly Hex[] | null
  /** The number of approvals, where approval is needed. */
  approvals: number
  /** For agents only. */
  agent: AgentTerms | null
}

/** `token` is null for the chain's coin, and `periodS` 0 for the vault's life. */
type AgentTerms = { token: Hex | null; limit: bigint; periodS: number; publicKey: string }

export type PolicyContext = {
  chainId: number
  /** Passkeys. */
  approvers: readonly Approver[]
  /** The witnesses of the service's log, whose cosignatures the vault requires. */
  log: PolicyLog | null
  /** The log that counts the budget of an agent. */
  origin?: string | undefined
}

const UNLIMITED = String(2n ** 256n - 1n)
/** `transfer(address,uint256)` and `approve(address,uint256)` of ERC-20. */
const TRANSFER: Hex = '0xa9059cbb'
const APPROVE: Hex = '0x095ea7b3'
/** The same on every chain. */
const PERMIT2: Hex = '0x000000000022d473030f116ddee9f6b43ac78ba3'

/**
 * Builds a vault's rules. Payments without approval have every limit. Payments with approval have as few limits as the template allows, so
 * that coins on other chains and tokens sent by mistake can leave again.
 */
export function toPolicy(terms: Terms, context: PolicyContext): Policy {
  if (terms.agent !== null) return toAgentPolicy({ ...terms, ...terms.agent }, context)
  const { chainId, approvers, log } = context
  return createPolicy({ version: 1, log, approvers, rules: toRules(terms, chainId) })
}

/** The agent spends within the budget without a session. Everything else needs passkeys. */
function toAgentPolicy(
  { token, limit, periodS, publicKey, recipients, approvals }: Terms & AgentTerms,
  { chainId, approvers, log, origin }: PolicyContext,
): Policy {
  const spend: SpendRule = {
    kind: 'spend',
    chainIds: [chainId],
    payees: toList(recipients),
    // The agent signs only typed data for a token, so it needs no coins for fees.
    ...(token === null
      ? { forms: ['coin'] }
      : { forms: ['eip3009', 'x402-permit2'], spenders: X402_SPENDERS as Hex[] }),
    approvals: 1,
    approvers: [approvers.length],
    session: false,
  }
  const byPasskeys = { approvals, approvers: [...approvers.keys()] }
  const others: Rule[] = [
    ...toApproved(null, byPasskeys),
    // Tokens without EIP-3009 can be paid by x402 once the vault has approved Permit2.
    { ...toCall(byPasskeys), selectors: [APPROVE], arguments: [{ at: 0, type: 'address', oneOf: [PERMIT2] }] },
    { kind: 'message', ...byPasskeys },
    { kind: 'typed-data', domains: 'any', primaryTypes: 'any', ...byPasskeys },
  ]
  return createPolicy({
    version: 1,
    log: log && { ...log, quorum: toSafeQuorum(log), origin },
    approvers: [...approvers, { type: 'key', publicKey }],
    budgets: [{ chainId, token, limit: String(limit), periodS }],
    rules: approvals === 0 ? [spend] : [spend, ...others],
  })
}

/** With four witnesses or more, any two quorums share at least two witnesses, so that one witness may lie. */
function toSafeQuorum({ witnesses: { length }, quorum }: PolicyLog): number {
  return length < 4 ? quorum : Math.max(quorum, Math.ceil(length / 2) + 1)
}

function toRules({ template, limitWei, feeWei, recipients, approvals }: Terms, chainId: number): Rule[] {
  const free = {
    kind: 'transaction',
    chainIds: [chainId],
    to: toList(recipients),
    maxValueWei: limitWei === null ? UNLIMITED : String(limitWei),
    maxFeeWei: String(feeWei),
    approvals: 0,
    approvers: 'any',
  } as const
  if (template === 'limit') return [free]
  const byAny = { approvals, approvers: 'any' } as const
  if (template === 'approval') return [free, ...toApproved(null, byAny)]
  return approvals === 0 ? [free] : toApproved(recipients, byAny, limitWei)
}

type Approvals = Pick<Rule, 'approvals' | 'approvers'>

/** Payments and transfers of any token with approval, on any chain and with any fee, because the approver sees both. */
function toApproved(recipients: readonly Hex[] | null, approvals: Approvals, limitWei: bigint | null = null): Rule[] {
  const call = toCall(approvals)
  const { words: _, ...payment } = call
  return [
    { ...payment, to: toList(recipients), maxValueWei: limitWei === null ? UNLIMITED : String(limitWei) },
    {
      ...call,
      selectors: [TRANSFER],
      arguments: [
        { at: 0, type: 'address', ...(recipients === null ? {} : { oneOf: toList(recipients) as readonly Hex[] }) },
        { at: 1, type: 'uint256' },
      ],
    },
  ]
}

/** A call of a token with two words. */
function toCall(approvals: Approvals) {
  const common = { kind: 'transaction', chainIds: 'any', to: 'any', maxValueWei: '0', maxFeeWei: UNLIMITED } as const
  return { ...common, words: 2, ...approvals }
}

/** Removes duplicates, which a policy rejects. */
function toList(recipients: readonly Hex[] | null): 'any' | Hex[] {
  if (recipients === null) return 'any'
  return [...new Set(recipients.map((address) => address.toLowerCase() as Hex))]
}
