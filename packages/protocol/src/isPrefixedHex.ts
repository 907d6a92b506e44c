import type { Hex } from './hex.ts'

/**
 * Whether a value is hex of either case with `0x`, of so many bytes where that is given: how callers write Ethereum's values. In a file of
 * its own, because first pages of apps load this check, and need none of the tables of hex.
 */
export function isPrefixedHex(value: unknown, bytes?: number): value is Hex {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]*$/.test(value)) return false
  return bytes === undefined ? value.length % 2 === 0 : value.length === 2 + 2 * bytes
}
