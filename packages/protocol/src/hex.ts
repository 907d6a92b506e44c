import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/** A `0x`-prefixed string of hex digits. */
export type Hex = `0x${string}`

/** The two digits of each byte. */
const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Lower-case hex without a prefix: the form of every field inside evidence and receipts. */
export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < bytes.length; index++) text += PAIRS[bytes[index] as number]
  return text
}

/**
 * Reads lower-case hex without a prefix. Upper case is refused: two spellings of one value would let a changed byte pass
 * for the same evidence.
 */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  if (typeof text !== 'string' || text.length % 2 !== 0) throw invalidHex()
  const bytes = new Uint8Array(text.length / 2)
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = (digit(text.charCodeAt(2 * index)) << 4) | digit(text.charCodeAt(2 * index + 1))
  }
  return bytes
}

/** Whether a value is such hex, of so many bytes where that is given; nothing at all is none. */
export function isHex(value: unknown, bytes?: number): value is string {
  if (typeof value !== 'string' || value.length % 2 !== 0) return false
  return (bytes === undefined || value.length === 2 * bytes) && /^[0-9a-f]+$/.test(value)
}

/** Whether a value is hex of either case with `0x`, of so many bytes where that is given: how callers write Ethereum's values. */
export function isPrefixedHex(value: unknown, bytes?: number): value is Hex {
  if (typeof value !== 'string' || value.length % 2 !== 0) return false
  return (bytes === undefined || value.length === 2 + 2 * bytes) && /^0x[0-9a-fA-F]*$/.test(value)
}

/** The bytes of hex of either case with `0x`. */
export function fromPrefixedHex(hex: Hex): Uint8Array<ArrayBuffer> {
  return fromHex(hex.slice(2).toLowerCase())
}

function digit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  if (code >= 97 && code <= 102) return code - 87
  throw invalidHex()
}

function invalidHex() {
  return new ServiceError<ProtocolErrorCode>('invalid_hex', 'expected an even number of lower-case hex digits')
}
