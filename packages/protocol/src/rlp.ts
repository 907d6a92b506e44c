/** A string of bytes in lower-case hex without a prefix, or a list. */
export type RlpItem = string | readonly RlpItem[]

/**
 * Recursive Length Prefix encoding: Ethereum Yellow Paper, appendix B. It works on hex, because joining short texts is faster than joining
 * short arrays of bytes.
 */
export function encodeRlp(item: RlpItem): string {
  if (typeof item === 'string') {
    // A single byte below 0x80 is its own encoding.
    return item.length === 2 && item < '80' ? item : encodeLength(0x80, item.length / 2) + item
  }
  let payload = ''
  for (const one of item) payload += encodeRlp(one)
  return encodeLength(0xc0, payload.length / 2) + payload
}

/** A scalar: big-endian without leading zeros, so that zero is the empty string. */
export function toScalar(value: bigint | number): string {
  const digits = value.toString(16)
  if (digits === '0') return ''
  return digits.length % 2 === 0 ? digits : `0${digits}`
}

/** Up to 55 bytes, the first byte has the length. Above, it has the length of the length. */
function encodeLength(offset: number, length: number): string {
  if (length <= 55) return toScalar(offset + length)
  const digits = toScalar(length)
  return toScalar(offset + 55 + digits.length / 2) + digits
}
