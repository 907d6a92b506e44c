import { type Hex, isLowerPrefixedHex, isNatural } from '@countersign/protocol/core'
import { isAscending } from './canonicalOrder.ts'
import { VaultPolicyError } from './errors.ts'

/* The forms of a policy's members. `path` is the position in the policy, without the author's texts. */

/** 2^256 has 78 digits. The limit keeps BigInt from parsing kilobytes. */
const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/

export function malformed(details: string, cause?: unknown): VaultPolicyError {
  return new VaultPolicyError('vault_policy_malformed', 'malformed policy', { details, cause })
}

/** A list with at least one item, in canonical order. */
export function assertList<Item>(
  path: string,
  value: unknown,
  assertItem: (path: string, item: unknown) => asserts item is Item,
): asserts value is Item[] {
  if (!Array.isArray(value) || value.length === 0) throw malformed(`${path} is not a list or empty`)
  assertItems(path, value, assertItem)
}

/** A list that may be empty, in canonical order. */
export function assertItems<Item>(
  path: string,
  value: unknown,
  assertItem: (path: string, item: unknown) => asserts item is Item,
): asserts value is Item[] {
  if (!Array.isArray(value)) throw malformed(`${path} is not a list`)
  for (const [index, item] of value.entries()) assertItem(`${path}[${index}]`, item)
  if (!isAscending(value)) throw malformed(`${path} is not in canonical order, or repeats an item`)
}

/** `"any"` or a list. */
export function assertAnyOrList<Item>(
  path: string,
  value: unknown,
  assertItem: (path: string, item: unknown) => asserts item is Item,
): asserts value is 'any' | Item[] {
  if (value !== 'any') assertList(path, value, assertItem)
}

export function assertNatural(path: string, value: unknown, min = 0): asserts value is number {
  if (!isNatural(value) || value < min) throw malformed(`${path} is not an integer from ${min} to 2^53 - 1`)
}

export function assertChainId(path: string, value: unknown): asserts value is number {
  assertNatural(path, value, 1)
}

/** Lower case, with `0x`, as for all of Ethereum's values. */
export function assertPrefixed(path: string, value: unknown, bytes: number): asserts value is Hex {
  if (!isLowerPrefixedHex(value, bytes)) throw malformed(`${path} is not ${bytes} bytes of lower-case hex with 0x`)
}

export function assertAddress(path: string, value: unknown): asserts value is Hex {
  assertPrefixed(path, value, 20)
}

export function assertDecimal(path: string, value: unknown, bits = 256): asserts value is string {
  const isInRange = typeof value === 'string' && DECIMAL.test(value) && BigInt(value) < 1n << BigInt(bits)
  if (!isInRange) throw malformed(`${path} is not a decimal integer below 2^${bits}`)
}
