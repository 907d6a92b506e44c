import { concatBytes } from './bytes.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** A string of bytes, or a list. */
export type RlpItem = Uint8Array | readonly RlpItem[]

/** Recursive Length Prefix encoding: Ethereum Yellow Paper, appendix B. */
export function encodeRlp(item: RlpItem): Bytes {
  if (item instanceof Uint8Array) {
    // A single byte below 0x80 is its own encoding.
    if (item.length === 1 && (item[0] as number) < 0x80) return Uint8Array.from(item)
    return concatBytes(encodeLength(0x80, item.length), item)
  }
  const payload = concatBytes(...item.map(encodeRlp))
  return concatBytes(encodeLength(0xc0, payload.length), payload)
}

/** A scalar: big-endian without leading zeros, so that zero is the empty string. */
export function toScalar(value: bigint | number): Bytes {
  const digits = BigInt(value).toString(16)
  if (digits === '0') return new Uint8Array(0)
  const bytes = new Uint8Array(Math.ceil(digits.length / 2))
  for (let end = digits.length, index = bytes.length - 1; end > 0; end -= 2, index--) {
    bytes[index] = Number.parseInt(digits.slice(Math.max(0, end - 2), end), 16)
  }
  return bytes
}

/** Up to 55 bytes the length is in the first byte; above, the first byte holds the length of the length. */
function encodeLength(offset: number, length: number): Bytes {
  if (length <= 55) return Uint8Array.of(offset + length)
  const lengthBytes = toScalar(length)
  return concatBytes(Uint8Array.of(offset + 55 + lengthBytes.length), lengthBytes)
}
