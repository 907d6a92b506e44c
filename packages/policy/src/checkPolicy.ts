import {
  type EntropySetting,
  hashContent,
  isNatural,
  isPlainObject,
  kinds,
  type OffChainContent,
  type PolicyRefusal,
  parseOffChainContent,
  parseTxMetadata,
  type RequestReason,
  type RuleReason,
  type RuleVerdict,
  readMembers,
  type TxMetadata,
  toCanonicalJson,
} from '@countersign/protocol/core'
import { compareCanonical } from './canonicalOrder.ts'
import { isOf } from './countSpends.ts'
import { matchTransaction } from './matchTransaction.ts'
import { matchTypedData } from './matchTypedData.ts'
import type { Policy, PolicyLog, Rule } from './policy.ts'
import { readSpend, type Spend, type SpendContext } from './readSpend.ts'
import { isDue } from './schedule.ts'

/** An entropy sample as a proof of time. The source's signature has been verified. */
export type TimedSample = { source: EntropySetting; timeMs: number }

/** A signature that a vault is asked for. */
export type PolicyRequest =
  | {
      kind: 'transaction'
      txMetadata: TxMetadata
      /** Required if the policy has a schedule. */
      sample?: TimedSample | undefined
    }
  | OffChainContent

export type PolicyVerdict =
  | {
      allowed: true
      /** The requested rule, or without one the matching rule with the fewest approvals. */
      rule: number
      approvals: number
      /** The witnesses that must cosign the log before the signature is released. */
      log: PolicyLog | null
      /** The amounts to count against the budgets, if a rule of kind `spend` allows the request. */
      spends?: readonly Spend[]
    }
  | ({ allowed: false } & PolicyRefusal)

/**
 * Whether a policy allows a request, and with how many approvals. A rule must match completely: the one with the index `rule`, and no other
 * is checked, or without `rule` any of them. Malformed requests are refused. Rules of kind `spend` need `context`. They don't check the budgets:
 * `countSpends` does.
 *
 * @example
 * const verdict = checkPolicy(policy, { kind: 'transaction', txMetadata })
 * if (verdict.allowed && verdict.approvals > 0) … // see checkApprovals
 */
export function checkPolicy(
  policy: Policy,
  request: PolicyRequest,
  rule?: number,
  context?: SpendContext,
): PolicyVerdict {
  const read = readRequest(request)
  if (read === undefined) return refuse('request_malformed')
  const reasons = checkSchedule(policy, read)
  const matches = policy.rules.flatMap((one, index) =>
    rule === undefined || index === rule ? { rule: index, ...matchRule(policy, one, read, context) } : [],
  )
  const rules = matches.map(({ rule, reasons }) => ({ rule, reasons }))
  if (rules.length === 0) return refuse('rule_unknown')
  const [best] = matches
    .filter((match) => match.reasons.length === 0)
    .map(({ rule, spends }) => ({ rule, approvals: (policy.rules[rule] as Rule).approvals, ...(spends && { spends }) }))
    .sort((left, right) => left.approvals - right.approvals)
  if (best !== undefined && reasons.length === 0) return { allowed: true, ...best, log: policy.log }
  return { allowed: false, reasons, rules, nearest: findNearest(policy, rules) }
}

/** Before any rule is checked. */
function refuse(reason: RequestReason): PolicyVerdict {
  return { allowed: false, reasons: [reason], rules: [], nearest: null }
}

/** Parses the request into canonical form, before any rule is checked. Undefined if it is malformed or ambiguous. */
function readRequest(request: unknown): PolicyRequest | undefined {
  try {
    const kind = isPlainObject(request) ? request.kind : undefined
    if (kind === 'transaction') {
      const names = { required: ['kind', 'txMetadata'], optional: ['sample'] } as const
      const { txMetadata, sample } = readMembers(request, names, unreadable)
      const transaction = { kind, txMetadata: parseTxMetadata(txMetadata) } as const
      return sample === undefined ? transaction : { ...transaction, sample: readSample(sample) }
    }
    const { content } = readMembers(request, { required: ['kind', 'content'] }, unreadable)
    const shown = parseOffChainContent(kind, content, unreadable)
    // Discards the digest. Hashing rejects ambiguous content.
    hashContent(shown)
    return shown
  } catch {
    // The request is refused. Errors never include its content.
    return undefined
  }
}

function readSample(value: unknown): TimedSample {
  const { source, timeMs } = readMembers(value, { required: ['source', 'timeMs'] }, unreadable)
  if (!isNatural(timeMs)) throw unreadable('timeMs')
  // Throws for values without canonical bytes.
  toCanonicalJson(source)
  return { source: source as EntropySetting, timeMs }
}

function unreadable(details: string): Error {
  return new Error(details)
}

function checkSchedule({ schedule, time }: Policy, request: PolicyRequest): RequestReason[] {
  if (schedule === undefined || request.kind !== 'transaction') return []
  const { sample, txMetadata } = request
  if (sample === undefined) return ['sample_missing']
  // Another enclave configuration could include a manipulated time source.
  const isNamed = (time ?? []).some((source) => compareCanonical(source, sample.source) === 0)
  if (!isNamed) return ['sample_source_not_allowed']
  return isDue(schedule, { nonce: txMetadata.nonce, sampleMs: sample.timeMs }) ? [] : ['nonce_not_due']
}

type Match = { reasons: RuleReason[]; spends?: readonly Spend[] }

const otherKind: Match = { reasons: [{ code: 'kind_not_allowed' }] }

function matchRule(policy: Policy, rule: Rule, request: PolicyRequest, context: SpendContext | undefined): Match {
  if (rule.kind === 'spend') {
    if (request.kind === 'message' || context === undefined) return otherKind
    const read = readSpend(rule, request, context)
    if ('reasons' in read) return read
    const isLimited = read.spends.every((spend) => policy.budgets?.some((budget) => isOf(spend, budget)))
    return isLimited ? { reasons: [], ...read } : { reasons: [{ code: 'asset_without_budget' }] }
  }
  if (rule.kind === 'transaction' && request.kind === 'transaction') {
    return { reasons: matchTransaction(rule, request.txMetadata) }
  }
  if (rule.kind === 'typed-data' && request.kind === 'typed-data') {
    return { reasons: matchTypedData(rule, request.content) }
  }
  return rule.kind === request.kind && 'any' in kinds[rule.kind] ? { reasons: [] } : otherKind
}

/**
 * The rule with the fewest reasons, preferably of the request's kind. Among rules with the same reasons, the one with the highest limit, to
 * show the maximum.
 */
function findNearest(policy: Policy, rules: readonly RuleVerdict[]): number | null {
  const distance = ({ reasons }: RuleVerdict) =>
    reasons.some(({ code }) => code === 'kind_not_allowed') ? Number.POSITIVE_INFINITY : reasons.length
  let [nearest] = rules
  for (const one of rules) {
    if (nearest === undefined || distance(one) > distance(nearest)) continue
    if (distance(one) < distance(nearest) || hasHigherLimit(policy, one, nearest)) nearest = one
  }
  return nearest?.rule ?? null
}

/** Whether two rules refuse for the same reasons, and the first different limit is higher in `one`. */
function hasHigherLimit({ rules }: Policy, one: RuleVerdict, other: RuleVerdict): boolean {
  if (compareCanonical(one.reasons, other.reasons) !== 0) return false
  const limitOf = ({ rule }: RuleVerdict, reason: RuleReason) => BigInt(getLimit(rules[rule] as Rule, reason) ?? 0)
  const different = one.reasons.find((reason) => limitOf(one, reason) !== limitOf(other, reason))
  return different !== undefined && limitOf(one, different) > limitOf(other, different)
}

function getLimit(rule: Rule, reason: RuleReason): string | undefined {
  if (rule.kind !== 'transaction') return undefined
  if (reason.code === 'value_above_max') return rule.maxValueWei
  if (reason.code === 'fee_above_max') return rule.maxFeeWei
  return reason.code === 'argument_above_max' ? rule.arguments?.find(({ at }) => at === reason.at)?.max : undefined
}
