import { nameCoin, toCoins, UNKNOWN_COIN } from '@countersign/protocol/core'
import type { Policy, Rule, TransactionRule } from './policy.ts'

/* Parts of sentences about a policy. Texts by its author are quoted in ASCII, without invisible or right-to-left characters. */

const UNLIMITED = 2n ** 256n - 1n
const NUMBERS = [
  'no',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
]
const PERIODS: readonly [number, string][] = [
  [604_800, 'week'],
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
]

/** "one address", "three addresses". */
export function toCount(count: number, one: string, many = `${one}s`): string {
  return `${NUMBERS[count] ?? count} ${count === 1 ? one : many}`
}

/** "a", "a and b", "a, b and c". */
export function toEnumeration(items: readonly string[], last = 'and'): string {
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} ${last} ${items.at(-1)}`
}

export function toQuoted(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export function isUnlimited(wei: string): boolean {
  return BigInt(wei) === UNLIMITED
}

/** "0.1 ETH". Without one known coin for all chains of the rule, "0.1 of the chain’s coin". */
export function toCapAmount(wei: string, { chainIds }: TransactionRule): string {
  const coins = new Set(chainIds === 'any' ? [] : chainIds.map(nameCoin))
  const [coin] = coins.size === 1 ? coins : [UNKNOWN_COIN]
  return `${toCoins(wei)} ${coin}`
}

/** "two of three passkeys". */
export function toShare(count: number, of: number, one: string, many?: string): string {
  return `${NUMBERS[count] ?? count} of ${toCount(of, one, many)}`
}

/** "one passkey", "two of three passkeys", "one agent key". */
export function toApprovals({ approvals, approvers: indexes }: Rule, { approvers: all }: Policy): string {
  const approvers = indexes === 'any' ? all : indexes.map((index) => all[index])
  const types = new Set(approvers.map((approver) => approver?.type))
  const name = types.size > 1 ? 'approver' : types.has('key') ? 'agent key' : 'passkey'
  const isPlain = approvals === approvers.length || approvals === 1
  return isPlain ? toCount(approvals, name) : toShare(approvals, approvers.length, name)
}

/** "day", "3 hours", "90 seconds". */
export function toPeriod(seconds: number): string {
  const [length, name] = PERIODS.find(([one]) => seconds % one === 0) ?? [1, 'second']
  const count = seconds / length
  return count === 1 ? name : `${count} ${name}s`
}
