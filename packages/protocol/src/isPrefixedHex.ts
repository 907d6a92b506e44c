import type { Hex } from './hex.ts'

/**
 * Whether a value is `0x`-prefixed hex in either case, and has this many bytes if given. In a separate file, because the first page of an
 * app loads this check but not the tables of `hex.ts`.
 */
export function isPrefixedHex(value: unknown, bytes?: number): value is Hex {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]*$/.test(value)) return false
  return bytes === undefined ? value.length % 2 === 0 : value.length === 2 + 2 * bytes
}
