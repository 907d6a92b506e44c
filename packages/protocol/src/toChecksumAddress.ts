import { keccak_256 } from '@noble/hashes/sha3.js'
import { type Hex, toHex } from './hex.ts'

/** The address with the EIP-55 checksum. The argument is `0x` and 40 hex digits, in either case. */
export function toChecksumAddress(address: string): Hex {
  const digits = address.slice(2).toLowerCase()
  const hash = toHex(keccak_256(new TextEncoder().encode(digits)))
  const letters = [...digits].map((digit, index) =>
    Number.parseInt(hash[index] ?? '0', 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${letters.join('')}`
}
