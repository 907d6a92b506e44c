import {
  type Approver,
  createPolicy,
  type Policy,
  type PolicyLog,
  type Rule,
  type TimeSource,
} from '@countersign/policy'
import type { Hex } from '@countersign/sdk'

export type TemplateName = 'approval' | 'limit' | 'list' | 'agent'

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
  agent: { everyS: number; count: number; refuge: Hex } | null
}

export type PolicyContext = {
  chainId: number
  approvers: readonly Approver[]
  /** The witnesses of the service's log, whose cosignatures the vault requires. */
  log: PolicyLog | null
  /** The time sources of a schedule. */
  time: readonly TimeSource[]
  startsAtMs: number
}

const UNLIMITED = String(2n ** 256n - 1n)
/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER: Hex = '0xa9059cbb'

/**
 * Builds a vault's rules. Payments without approval have every limit. Payments with approval have as few limits as the template allows, so
 * that coins on other chains and tokens sent by mistake can leave again.
 */
export function toPolicy(terms: Terms, { chainId, approvers, log, time, startsAtMs }: PolicyContext): Policy {
  const { agent } = terms
  return createPolicy({
    version: 1,
    log,
    approvers,
    rules: toRules(terms, chainId),
    ...(agent === null ? {} : { time, schedule: { startsAtMs, everyS: agent.everyS, count: agent.count } }),
  })
}

function toRules({ template, limitWei, feeWei, recipients, approvals, agent }: Terms, chainId: number): Rule[] {
  const free = {
    kind: 'transaction',
    chainIds: [chainId],
    to: toList(recipients, agent?.refuge),
    maxValueWei: limitWei === null ? UNLIMITED : String(limitWei),
    maxFeeWei: String(feeWei),
    approvals: 0,
    approvers: 'any',
  } as const
  switch (template) {
    case 'limit':
      return [free]
    case 'approval':
      return [free, ...toApproved(null, approvals)]
    case 'list':
      return approvals === 0 ? [free] : toApproved(recipients, approvals, limitWei)
    case 'agent':
      return [free, ...toApproved(agent === null ? [] : [agent.refuge], approvals)]
  }
}

/** Payments and transfers of any token with approval, on any chain and with any fee, because the approver sees both. */
function toApproved(recipients: readonly Hex[] | null, approvals: number, limitWei: bigint | null = null): Rule[] {
  const common = { kind: 'transaction', chainIds: 'any', maxFeeWei: UNLIMITED, approvals, approvers: 'any' } as const
  return [
    { ...common, to: toList(recipients), maxValueWei: limitWei === null ? UNLIMITED : String(limitWei) },
    {
      ...common,
      to: 'any',
      maxValueWei: '0',
      selectors: [TRANSFER],
      words: 2,
      arguments: [
        { at: 0, type: 'address', ...(recipients === null ? {} : { oneOf: toList(recipients) as readonly Hex[] }) },
        { at: 1, type: 'uint256' },
      ],
    },
  ]
}

/** Removes duplicates, which a policy rejects. */
function toList(recipients: readonly Hex[] | null, refuge?: Hex): 'any' | Hex[] {
  if (recipients === null) return 'any'
  const all = refuge === undefined ? recipients : [...recipients, refuge]
  return [...new Set(all.map((address) => address.toLowerCase() as Hex))]
}
