import type { Hex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'
import { toChecksumAddress } from './toChecksumAddress.ts'

/**
 * Whether a value is `0x` and 40 hex digits, with a valid EIP-55 checksum if it has letters of both cases. A wrong checksum is a typing
 * error, and a payment to a mistyped address is lost.
 */
export function isAddress(value: unknown): value is Hex {
  if (!isPrefixedHex(value, 20)) return false
  const digits = value.slice(2)
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || value === toChecksumAddress(value)
}
