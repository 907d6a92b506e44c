import { kinds, nameChain, nameCoin, toCanonicalJson, toCoins } from '@countersign/protocol/core'
import { mayTakeDataFee } from './chains.ts'
import type {
  Approver,
  ArgumentRule,
  Budget,
  DomainRule,
  Policy,
  Rule,
  SpendForm,
  SpendRule,
  TransactionRule,
  TypedDataRule,
} from './policy.ts'
import {
  isUnlimited,
  toApprovals,
  toCapAmount,
  toCount,
  toEnumeration,
  toPeriod,
  toQuoted,
  toShare,
} from './policyWords.ts'

/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER = '0xa9059cbb'

/** A policy in words. Every text is printable. */
export type PolicyWords = {
  /** The whole policy in one sentence. */
  summary: string
  /** One sentence for each rule, in the policy's order. */
  rules: readonly string[]
  /** Common limits of all rules, and risks. */
  notes: readonly string[]
}

/**
 * Describes what a policy allows.
 *
 * @example
 * describePolicy(policy).summary // "Up to 0.1 ETH at a time to three addresses; more with one passkey"
 */
export function describePolicy(policy: Policy): PolicyWords {
  return {
    summary: summarize(policy),
    rules: policy.rules.map((rule) => describeRule(rule, policy)),
    notes: describeNotes(policy),
  }
}

/** Budgets first, then by the number of approvals. */
function summarize(policy: Policy): string {
  const { rules, schedule } = policy
  const isSpend = ({ kind }: Rule) => Number(kind === 'spend')
  const sorted = rules.toSorted((left, right) => isSpend(right) - isSpend(left) || left.approvals - right.approvals)
  // Without duplicates: a policy can have more than a hundred rules, and a page may show a hundred policies.
  const shapes = sorted.map(toShape)
  const parts = sorted.map((rule, index) => {
    const isMore = sorted.slice(0, index).some((before, at) => shapes[at] === shapes[index] && isMoreThan(before, rule))
    return toSummary(rule, isMore) + toApproval(rule, policy)
  })
  const rate =
    schedule === undefined ? [] : [`${toCount(schedule.count, 'transaction')} each ${toPeriod(schedule.everyS)}`]
  return toSentence([...parts, ...rate].join('; ')).slice(0, -1)
}

/** All members of a transaction rule except its limits and approvals, as one text. */
function toShape(rule: Rule): string {
  if (rule.kind !== 'transaction') return ''
  const { maxValueWei, maxFeeWei, approvals, ...same } = rule
  // Drops undefined members.
  return new TextDecoder().decode(toCanonicalJson(JSON.parse(JSON.stringify(same))))
}

/** Whether a transaction rule differs from a similar one by a higher limit and more approvals. */
function isMoreThan(before: Rule, rule: Rule): boolean {
  if (before.kind !== 'transaction' || rule.kind !== 'transaction') return false
  return BigInt(rule.maxValueWei) > BigInt(before.maxValueWei) && rule.approvals > before.approvals
}

function toSummary(rule: Rule, isMore: boolean): string {
  if (rule.kind === 'typed-data') {
    return rule.domains === 'any'
      ? 'typed data of any domain'
      : `typed data of ${toCount(rule.domains.length, 'domain')}`
  }
  if (rule.kind === 'spend') return 'payments within the budgets'
  if (rule.kind !== 'transaction') return kinds[rule.kind].any
  if (isMore) return isUnlimited(rule.maxValueWei) ? 'more' : toAmount(rule)
  if (describeTransfer(rule) !== undefined)
    return `transfers of ${rule.to === 'any' ? 'any token' : toCount(rule.to.length, 'token')}`
  const to = rule.to === 'any' ? 'any address' : toCount(rule.to.length, 'address', 'addresses')
  const calls = rule.selectors === undefined ? '' : `, calling ${toCount(rule.selectors.length, 'function')}`
  return `${toAmount(rule)} to ${to}${calls}`
}

function describeRule(rule: Rule, policy: Policy): string {
  const approval = toApproval(rule, policy) || ' without approval'
  if (rule.kind === 'spend')
    return toSentence(`${describeSpend(rule)}${approval}${rule.session ? '' : ', without a session'}`)
  if (rule.kind !== 'transaction') {
    const what = rule.kind === 'typed-data' ? describeTypedData(rule) : `any ${kinds[rule.kind].any}`
    return toSentence(what + approval)
  }
  const transfer = describeTransfer(rule)
  const chains = rule.chainIds === 'any' ? 'any chain' : toEnumeration(rule.chainIds.map(nameChain), 'or')
  const fee = isUnlimited(rule.maxFeeWei)
    ? 'with any fee'
    : `with a fee of up to ${toCapAmount(rule.maxFeeWei, rule)} for gas`
  const where = `on ${chains}, ${fee},`
  if (transfer !== undefined) return toSentence(`${transfer} ${where}${approval}`)
  return toSentence(`${toAmount(rule)} to ${toAddresses(rule.to)} ${where} ${describeCall(rule)},${approval}`)
}

function toAddresses(list: 'any' | readonly string[]): string {
  return list === 'any' ? 'any address' : toEnumeration(list, 'or')
}

/** Describes a token transfer (ERC-20), if the rule limits its words in the usual way. Undefined for other calls. */
function describeTransfer({ selectors, words, arguments: rules = [], maxValueWei, to }: TransactionRule) {
  const [recipient, amount, ...others] = rules
  const isTransfer = selectors?.join() === TRANSFER && words === 2 && maxValueWei === '0' && others.length === 0
  if (!isTransfer || recipient?.at !== 0 || recipient.type !== 'address') return undefined
  if (amount?.at !== 1 || amount.type !== 'uint256' || amount.oneOf !== undefined) return undefined
  const token = to === 'any' ? 'any token' : `the token ${toEnumeration(to, 'or')}`
  const most = amount.max === undefined ? 'any amount' : `at most ${amount.max} of the smallest unit`
  const whom = toAddresses(recipient.oneOf?.map(String) ?? 'any')
  return `transfers (${TRANSFER}) of ${token}, ${most} at a time, to ${whom}`
}

function toAmount(rule: TransactionRule): string {
  if (rule.maxValueWei === '0') return 'no coins'
  return isUnlimited(rule.maxValueWei) ? 'any amount' : `up to ${toCapAmount(rule.maxValueWei, rule)} at a time`
}

function describeCall({ selectors, words, arguments: rules = [] }: TransactionRule): string {
  if (selectors === undefined) return 'without data'
  const call = `calling ${toEnumeration(selectors, 'or')} with exactly ${toCount(words ?? 0, 'word')}`
  return rules.length === 0 ? `${call} of any content` : `${call}, where ${toEnumeration(rules.map(describeArgument))}`
}

function describeArgument({ at, type, oneOf, max }: ArgumentRule): string {
  const word = `word ${at + 1} (${type})`
  if (max !== undefined) return `${word} is at most ${max}`
  return oneOf === undefined ? `${word} has any value` : `${word} is ${toEnumeration(oneOf.map(String), 'or')}`
}

function describeTypedData({ domains, primaryTypes }: TypedDataRule): string {
  const types = primaryTypes === 'any' ? 'any typed data' : `typed data ${toEnumeration(primaryTypes, 'or')}`
  return domains === 'any'
    ? `${types} of any domain`
    : `${types} of ${toEnumeration(domains.map(describeDomain), 'or')}`
}

function describeDomain({ name, version, chainId, verifyingContract }: DomainRule): string {
  const parts = [
    ...(name === undefined ? [] : [`named ${toQuoted(name)}`]),
    ...(version === undefined ? [] : [`of version ${toQuoted(version)}`]),
    ...(chainId === undefined ? [] : [`on ${nameChain(chainId)}`]),
    ...(verifyingContract === undefined ? [] : [`of contract ${verifyingContract}`]),
  ]
  return `the domain ${parts.join(' ')}`
}

function toApproval(rule: Rule, policy: Policy): string {
  return rule.approvals === 0 ? '' : ` with ${toApprovals(rule, policy)}`
}

const formNames: { [Form in SpendForm]: string } = {
  coin: 'coins',
  transfer: 'token transfers',
  eip3009: 'authorized token transfers (EIP-3009)',
  'x402-permit2': 'x402 permits (Permit2)',
}

function describeSpend({ forms, payees, chainIds, spenders = [] }: SpendRule): string {
  const what = toEnumeration(
    forms.map((form) => formNames[form]),
    'or',
  )
  const by = spenders.length === 0 ? '' : ` used by ${toEnumeration(spenders, 'or')}`
  const where = toEnumeration(chainIds.map(nameChain), 'or')
  return `payments of ${what}${by} to ${toAddresses(payees)} on ${where}, within the budgets,`
}

function describeBudget({ chainId, token, limit, periodS }: Budget): string {
  const amount =
    token === null ? `${toCoins(limit)} ${nameCoin(chainId)}` : `${limit} of the smallest unit of the token ${token}`
  const period = periodS === 0 ? 'in the life of the vault' : `in each ${toPeriod(periodS)} of UTC`
  return `Budget: at most ${amount} on ${nameChain(chainId)} ${period}.`
}

/** Shown before a vault is created, because the rules can't change afterwards. */
function describeNotes({ approvers: all, budgets = [], log, rules, schedule, time }: Policy): string[] {
  const approvers = all.filter((approver) => approver.type === 'passkey')
  const notes = ['These rules can never change. Different rules make a different vault with another address.']
  notes.push(...budgets.map(describeBudget))
  if (budgets.length > 0) {
    notes.push(
      'Budgets count what is signed, used or not. When a period ends, the limits of two periods can be signed within minutes.',
      'The operator can make a budget smaller or end it, never larger. Budgets count only payments under rules that name them.',
    )
  }
  const isFree = rules.some((rule) => rule.kind === 'transaction' && rule.approvals === 0)
  if (schedule !== undefined && time !== undefined) {
    const start = toIsoDate(schedule.startsAtMs)
    const rate = `${toCount(schedule.count, 'transaction')} each ${toPeriod(schedule.everyS)}`
    notes.push(
      `From ${start} on, at most ${rate} on each chain; none before. Unused transactions stay available: it is a rate, not a daily limit.`,
      `The time comes from ${toCount(time.length, 'source')} named here. If all of them shut down, the funds are locked permanently.`,
    )
    if (isFree) notes.push('Anyone allowed to sign without approval can exhaust the schedule with small payments.')
  } else if (isFree) notes.push('A limit for each payment does not limit the total.')
  if (rules.some(hasFeeBesideLimit))
    notes.push('A fee limit covers only gas. Some rollups also charge a data fee, which no rule can limit.')
  if (rules.some(hasFeeBesideBudget))
    notes.push('Budgets count only the fee for gas. Some rollups also charge a data fee, which no budget counts.')
  if (rules.some(hasFreeArguments))
    notes.push('A call may move any amount of a token unless the rule limits a word of it.')
  if (log !== null) {
    const quorum = toShare(log.quorum, log.witnesses.length, 'witness', 'witnesses')
    notes.push(
      `The enclave releases a signature only after ${quorum} cosigned the log. If fewer remain, the funds are locked permanently.`,
    )
  }
  if (approvers.length > 0) {
    const domains = toEnumeration([...new Set(approvers.map(({ rpId }) => rpId))])
    notes.push(
      `The page at ${domains} shows what a passkey approves, and you must trust its owner to show it correctly. If the domain is lost, its passkeys are lost too.`,
    )
    if (rules.some((rule) => needsAllPasskeys(rule, all)))
      notes.push('There is no spare passkey: one that is lost cannot be replaced.')
  }
  return notes
}

/** Whether a rule needs every passkey that it lists. Agents need no spare: a rule with passkeys can move the funds. */
function needsAllPasskeys({ kind, approvals, approvers }: Rule, all: readonly Approver[]): boolean {
  return kind !== 'spend' && approvals === (approvers === 'any' ? all : approvers).length
}

/** Whether a rule limits the fee on a chain that may charge more than this limit. */
function hasFeeBesideLimit(rule: Rule): boolean {
  if (rule.kind !== 'transaction' || isUnlimited(rule.maxFeeWei)) return false
  return rule.chainIds === 'any' || rule.chainIds.some(mayTakeDataFee)
}

/** Whether payments on a chain may cost more than the budgets count. */
function hasFeeBesideBudget(rule: Rule): boolean {
  if (rule.kind !== 'spend' || !rule.chainIds.some(mayTakeDataFee)) return false
  return rule.forms.includes('coin') || rule.forms.includes('transfer')
}

function hasFreeArguments(rule: Rule): boolean {
  return (
    rule.kind === 'transaction' && rule.selectors !== undefined && !rule.arguments?.some(({ max }) => max !== undefined)
  )
}

/** Times outside the calendar stay numbers. */
function toIsoDate(timeMs: number): string {
  const date = new Date(timeMs)
  return Number.isNaN(date.getTime()) ? `${timeMs} ms after 1970` : date.toISOString()
}

function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
