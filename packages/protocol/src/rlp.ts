import { fromHex } from './hex.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** A string of bytes, or a list. */
export type RlpItem = Uint8Array | readonly RlpItem[]

/** Recursive Length Prefix encoding: Ethereum Yellow Paper, appendix B. */
export function encodeRlp(item: RlpItem): Bytes {
  const bytes = new Uint8Array(measure(item))
  write(bytes, 0, item)
  return bytes
}

/** A scalar: big-endian without leading zeros, so that zero is the empty string. */
export function toScalar(value: bigint | number): Bytes {
  const digits = BigInt(value).toString(16)
  if (digits === '0') return new Uint8Array(0)
  return fromHex(digits.length % 2 === 0 ? digits : `0${digits}`)
}

/** How long an item's encoding is. */
function measure(item: RlpItem): number {
  if (item instanceof Uint8Array && isItsOwn(item)) return 1
  const length = item instanceof Uint8Array ? item.length : measureAll(item)
  return (length <= MAX_SHORT ? 1 : 1 + countBytes(length)) + length
}

function measureAll(items: readonly RlpItem[]): number {
  let length = 0
  for (const item of items) length += measure(item)
  return length
}

/** Writes an item's encoding, and answers where it ends. */
function write(target: Bytes, offset: number, item: RlpItem): number {
  if (item instanceof Uint8Array) {
    const start = isItsOwn(item) ? offset : writeLength(target, offset, { kind: 0x80, length: item.length })
    target.set(item, start)
    return start + item.length
  }
  let end = writeLength(target, offset, { kind: 0xc0, length: measureAll(item) })
  for (const one of item) end = write(target, end, one)
  return end
}

/** A single byte below 0x80 is its own encoding. */
function isItsOwn(bytes: Uint8Array): boolean {
  return bytes.length === 1 && (bytes[0] as number) < 0x80
}

const MAX_SHORT = 55

/** Up to 55 bytes the length is in the first byte; above, the first byte holds the length of the length. */
function writeLength(target: Bytes, offset: number, { kind, length }: { kind: 0x80 | 0xc0; length: number }): number {
  if (length <= MAX_SHORT) {
    target[offset] = kind + length
    return offset + 1
  }
  const bytes = toScalar(length)
  target[offset] = kind + MAX_SHORT + bytes.length
  target.set(bytes, offset + 1)
  return offset + 1 + bytes.length
}

function countBytes(length: number): number {
  return toScalar(length).length
}
