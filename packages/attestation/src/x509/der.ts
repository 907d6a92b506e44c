/**
 * A strict reader for the Distinguished Encoding Rules (ITU-T X.690 §8–§11; evidence.md, section 3.1): one encoding per value. With
 * BER, an attacker could change bytes outside the signed part of a certificate without changing its meaning.
 */

/** One element: its tag octet, the whole encoding, and the contents octets. */
export type Der = { tag: number; raw: Uint8Array<ArrayBuffer>; value: Uint8Array<ArrayBuffer> }

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  /** Context-specific, constructed. */
  context: (number: number) => 0xa0 | number,
} as const

/** Thrown by this reader. The parsers that use it throw their own errors instead. */
export class DerError extends Error {
  override name = 'DerError'
}

/** Reads exactly one element with the given tag and nothing after it. */
export function parseDer(bytes: Uint8Array<ArrayBuffer>, tag: number): Der {
  const element = readElement(bytes, 0)
  if (element.raw.length !== bytes.length) throw new DerError('bytes after the element')
  return assertTag(element, tag)
}

/** The elements inside a constructed element's contents. */
export function parseChildren(parent: Der): Der[] {
  const children: Der[] = []
  let offset = 0
  while (offset < parent.value.length) {
    const child = readElement(parent.value, offset)
    children.push(child)
    offset += child.raw.length
  }
  return children
}

export function assertTag(element: Der | undefined, tag: number): Der {
  if (element === undefined) throw new DerError('missing element')
  if (element.tag !== tag) throw new DerError(`tag ${element.tag.toString(16)} where ${tag.toString(16)} is expected`)
  return element
}

function readElement(bytes: Uint8Array<ArrayBuffer>, start: number): Der {
  const tag = bytes[start]
  const first = bytes[start + 1]
  if (tag === undefined || first === undefined) throw new DerError('truncated element')
  if ((tag & 0x1f) === 0x1f) throw new DerError('multi-byte tag')
  let offset = start + 2
  let length = first
  if (first >= 0x80) {
    const octets = first & 0x7f
    if (octets === 0 || octets > 3) throw new DerError('indefinite or oversized length')
    length = 0
    for (let index = 0; index < octets; index++) length = length * 256 + byteAt(bytes, offset + index)
    // X.690 §10.1: the shortest form of the length.
    if (length < 0x80 || length < 256 ** (octets - 1)) throw new DerError('length not in its shortest form')
    offset += octets
  }
  const end = offset + length
  if (end > bytes.length) throw new DerError('truncated element')
  return { tag, raw: bytes.subarray(start, end), value: bytes.subarray(offset, end) }
}

function byteAt(bytes: Uint8Array, offset: number): number {
  const byte = bytes[offset]
  if (byte === undefined) throw new DerError('truncated element')
  return byte
}

/** X.690 §8.3: a non-negative integer in its shortest form, as unsigned big-endian bytes without leading zeros. */
export function toUnsigned(element: Der | undefined, tag: number = tags.integer): Uint8Array<ArrayBuffer> {
  const { value } = assertTag(element, tag)
  const first = value[0]
  const second = value[1]
  if (first === undefined) throw new DerError('empty integer')
  if (first >= 0x80) throw new DerError('negative integer')
  if (first !== 0) return value
  if (second === undefined) return value
  if (second < 0x80) throw new DerError('integer not in its shortest form')
  return value.subarray(1)
}

/** A non-negative integer no greater than `max`. */
export function toNumber(element: Der | undefined, max: number, tag?: number): number {
  const bytes = toUnsigned(element, tag)
  if (bytes.length > 6) throw new DerError('integer too large')
  let number = 0
  for (const byte of bytes) number = number * 256 + byte
  if (number > max) throw new DerError('integer too large')
  return number
}

/** X.690 §11.1: TRUE is 0xff. */
export function toBoolean(element: Der): boolean {
  const { value } = assertTag(element, tags.boolean)
  if (value.length !== 1 || (value[0] !== 0 && value[0] !== 0xff)) throw new DerError('malformed boolean')
  return value[0] === 0xff
}

/** A bit string of whole octets. */
export function toOctets(element: Der | undefined): Uint8Array<ArrayBuffer> {
  const { value } = assertTag(element, tags.bitString)
  if (value.length < 1 || value[0] !== 0) throw new DerError('bit string with unused bits')
  return value.subarray(1)
}

/** RFC 5280 §4.1.2.5: UTCTime to 2049 and GeneralizedTime from 2050, in seconds, with `Z`. Returns milliseconds. */
export function toTime(element: Der | undefined): number {
  if (element === undefined) throw new DerError('missing time')
  const text = toAscii(element.value)
  const match =
    element.tag === tags.utcTime
      ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text)
      : element.tag === tags.generalizedTime
        ? /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text)
        : null
  if (match === null) throw new DerError('malformed time')
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number)
  const fullYear = element.tag === tags.generalizedTime ? year : year < 50 ? 2000 + year : 1900 + year
  const time = Date.UTC(fullYear, month - 1, day, hour, minute, second)
  const date = new Date(time)
  // Date.UTC rolls over (30 February becomes 2 March); such a date is malformed.
  const exists =
    date.getUTCMonth() === month - 1 && date.getUTCDate() === day && date.getUTCHours() === hour && second < 60
  if (!exists || minute > 59) throw new DerError('malformed time')
  return time
}

export function toAscii(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) {
    if (byte > 0x7e || byte < 0x20) throw new DerError('not printable ASCII')
    text += String.fromCharCode(byte)
  }
  return text
}

/** An object identifier in dotted form, for example `2.5.29.19`. */
export function toOid(element: Der | undefined): string {
  const { value } = assertTag(element, tags.oid)
  const arcs: number[] = []
  let arc = 0
  let octets = 0
  for (const byte of value) {
    if (octets === 0 && byte === 0x80) throw new DerError('object identifier not in its shortest form')
    arc = arc * 128 + (byte & 0x7f)
    octets += 1
    if (octets > 5) throw new DerError('object identifier too large')
    if (byte < 0x80) {
      arcs.push(arc)
      arc = 0
      octets = 0
    }
  }
  const first = arcs[0]
  if (first === undefined || octets !== 0) throw new DerError('malformed object identifier')
  const root = Math.min(2, Math.floor(first / 40))
  return [root, first - 40 * root, ...arcs.slice(1)].join('.')
}

/**
 * Converts an ECDSA-Sig-Value (RFC 3279 §2.2.3) to the fixed-width r ‖ s for WebCrypto. It accepts a high s, which both vendors
 * issue. WebCrypto rejects zero and values from n on.
 */
export function toRawEcdsaSignature(bytes: Uint8Array<ArrayBuffer>, width: number): Uint8Array<ArrayBuffer> {
  const [r, s, ...rest] = parseChildren(parseDer(bytes, tags.sequence)).map((child) => toUnsigned(child))
  if (r === undefined || s === undefined || rest.length > 0) throw new DerError('malformed signature')
  if (r.length > width || s.length > width) throw new DerError('signature value too long')
  const raw = new Uint8Array(2 * width)
  raw.set(r, width - r.length)
  raw.set(s, 2 * width - s.length)
  return raw
}
