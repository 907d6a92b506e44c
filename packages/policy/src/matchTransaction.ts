import type { TxMetadata } from '@countersign/protocol'
import { decodeWord, splitCalldata } from './abiWord.ts'
import type { ArgumentRule, TransactionRule } from './policy.ts'
import type { RuleReason } from './verdict.ts'

/** Why a transaction is not what a rule allows; nothing where it is. Hex of the transaction is in lower case. */
export function matchTransaction(rule: TransactionRule, transaction: TxMetadata): RuleReason[] {
  const { chainId, to, value, gas, maxFeePerGas } = transaction
  const reasons: RuleReason[] = []
  if (rule.chainIds !== 'any' && !rule.chainIds.includes(chainId)) reasons.push({ code: 'chain_not_allowed' })
  if (rule.to !== 'any' && !rule.to.includes(to)) reasons.push({ code: 'recipient_not_allowed' })
  if (BigInt(value) > BigInt(rule.maxValueWei)) reasons.push({ code: 'value_above_max' })
  // The most that the chain can charge for the gas: EIP-1559.
  if (BigInt(gas) * BigInt(maxFeePerGas) > BigInt(rule.maxFeeWei)) reasons.push({ code: 'fee_above_max' })
  return [...reasons, ...matchData(rule, transaction)]
}

function matchData(rule: TransactionRule, { data }: TxMetadata): RuleReason[] {
  if (rule.selectors === undefined) return data === '0x' ? [] : [{ code: 'data_not_empty' }]
  const calldata = splitCalldata(data)
  if (calldata === undefined || calldata.words.length !== rule.words) return [{ code: 'data_length' }]
  if (!rule.selectors.includes(calldata.selector)) return [{ code: 'selector_not_allowed' }]
  return (rule.arguments ?? []).flatMap((argument) => matchArgument(argument, calldata.words[argument.at]))
}

function matchArgument({ at, type, oneOf, max }: ArgumentRule, word: Uint8Array | undefined): RuleReason[] {
  const value = word === undefined ? undefined : decodeWord(type, word)
  if (value === undefined) return [{ code: 'argument_undecodable', at }]
  if (oneOf !== undefined && !oneOf.includes(value)) return [{ code: 'argument_not_allowed', at }]
  if (max !== undefined && BigInt(value) > BigInt(max)) return [{ code: 'argument_above_max', at }]
  return []
}
