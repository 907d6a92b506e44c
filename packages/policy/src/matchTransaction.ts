import { fromHex, type Hex, type RuleReason, type TxMetadata } from '@countersign/protocol/core'
import { decodeWord } from './abiWord.ts'
import type { ArgumentRule, TransactionRule } from './policy.ts'

/** Why a rule doesn't allow a transaction; empty if it does. Hex of the transaction is in lower case. */
export function matchTransaction(rule: TransactionRule, transaction: TxMetadata): RuleReason[] {
  const { chainId, to, value, gas, maxFeePerGas } = transaction
  const reasons: RuleReason[] = []
  if (rule.chainIds !== 'any' && !rule.chainIds.includes(chainId)) reasons.push({ code: 'chain_not_allowed' })
  if (rule.to !== 'any' && !rule.to.includes(to)) reasons.push({ code: 'recipient_not_allowed' })
  if (BigInt(value) > BigInt(rule.maxValueWei)) reasons.push({ code: 'value_above_max' })
  // The maximum charge for gas: EIP-1559.
  if (BigInt(gas) * BigInt(maxFeePerGas) > BigInt(rule.maxFeeWei)) reasons.push({ code: 'fee_above_max' })
  return [...reasons, ...matchData(rule, transaction)]
}

/** After `0x`, the selector has 8 digits and each word has 64. */
const SELECTOR_END = 2 + 2 * 4
const WORD_DIGITS = 2 * 32

function matchData(
  { selectors, words = 0, arguments: rules = [] }: TransactionRule,
  { data }: TxMetadata,
): RuleReason[] {
  if (selectors === undefined) return data === '0x' ? [] : [{ code: 'data_not_empty' }]
  if (data.length !== SELECTOR_END + WORD_DIGITS * words) return [{ code: 'data_length' }]
  if (!selectors.includes(data.slice(0, SELECTOR_END) as Hex)) return [{ code: 'selector_not_allowed' }]
  // Decodes only words with conditions, because data may be long and rules many.
  return rules.flatMap((rule) => {
    const start = SELECTOR_END + WORD_DIGITS * rule.at
    return matchArgument(rule, fromHex(data.slice(start, start + WORD_DIGITS)))
  })
}

function matchArgument({ at, type, oneOf, max }: ArgumentRule, word: Uint8Array): RuleReason[] {
  const value = decodeWord(type, word)
  if (value === undefined) return [{ code: 'argument_undecodable', at }]
  if (oneOf !== undefined && !oneOf.includes(value)) return [{ code: 'argument_not_allowed', at }]
  if (max !== undefined && BigInt(value) > BigInt(max)) return [{ code: 'argument_above_max', at }]
  return []
}
