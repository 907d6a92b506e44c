import { concatBytes } from '@countersign/protocol/core'

const COORDINATE_BYTES = 32
const SEQUENCE = 0x30
const INTEGER = 0x02

/**
 * Converts a P-256 ECDSA signature from DER (RFC 3279 §2.2.3: SEQUENCE { r INTEGER, s INTEGER }) to r ‖ s, 64 bytes. Undefined unless it is
 * in
 * the canonical encoding of X.690 §8 and §10: lengths in one byte, positive integers in their shortest form, no trailing bytes. Verification
 * checks the range of r and s. A high s is valid, because authenticators create them.
 */
export function fromDerSignature(der: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  const [tag, length] = der
  // Two integers of at most 33 bytes: every length is below 128, so it has the short form.
  if (tag !== SEQUENCE || length !== der.length - 2 || length > 2 * (COORDINATE_BYTES + 3)) return undefined
  const r = readInteger(der, 2)
  if (r === undefined) return undefined
  const s = readInteger(der, r.end)
  return s === undefined || s.end !== der.length ? undefined : concatBytes(r.bytes, s.bytes)
}

function readInteger(der: Uint8Array, start: number): { bytes: Uint8Array; end: number } | undefined {
  const [tag, length = 0] = der.subarray(start, start + 2)
  const end = start + 2 + length
  if (tag !== INTEGER || length === 0 || end > der.length) return undefined
  const content = der.subarray(start + 2, end)
  const [first = 0, second = 0] = content
  // X.690 §8.3.2: a leading zero is present exactly if the number would be negative without it.
  if (first >= 0x80 || (first === 0 && second < 0x80)) return undefined
  const digits = first === 0 ? content.subarray(1) : content
  if (digits.length > COORDINATE_BYTES) return undefined
  const bytes = new Uint8Array(COORDINATE_BYTES)
  bytes.set(digits, COORDINATE_BYTES - digits.length)
  return { bytes, end }
}
