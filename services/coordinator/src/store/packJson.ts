import { fromCidHash, toCidHash } from '@countersign/receipt'

/** Long texts that writer and reader both have. */
export type Shared = { readonly texts: readonly string[]; readonly places: ReadonlyMap<string, number> }

export function toShared(texts: Iterable<string>): Shared {
  const places = new Map<string, number>()
  for (const text of texts) remember(places, text)
  return { texts: [...places.keys()], places }
}

const NONE = toShared([])

/**
 * JSON as few bytes: hex, CIDs, times and decimals in binary, common words as one byte, and long texts that occurred before as a number.
 * `shared` and `known` are texts that the reader has too, such as other columns of the row. Unpacking gives exactly the same JSON again.
 */
export function packJson(value: unknown, known: readonly string[] = [], shared: Shared = NONE): Buffer {
  const writer = { bytes: Buffer.allocUnsafe(1024), length: 0, seen: new Map<string, number>(), shared }
  for (const text of known) remember(writer.seen, text)
  write(writer, value)
  return Buffer.from(writer.bytes.subarray(0, writer.length))
}

/** What `packJson` was given, with the same `known` and `shared`. */
export function unpackJson(bytes: Uint8Array, known: readonly string[] = [], shared: Shared = NONE): unknown {
  const seen = [...toShared(known).texts]
  const reader = { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), at: 0, seen, shared }
  const value = read(reader)
  if (reader.at !== bytes.length) throw new Error('packed JSON has bytes left over')
  return value
}

/** Shorter strings are never referred to by number. */
const LEAST_REPEATED = 16

const tags = { null: 0, false: 1, true: 2, list: 3, object: 4, integer: 5, number: 6, text: 7, hex: 8 } as const
const PREFIXED = 9
const DECIMAL = 10
const TIME = 11
const CID = 12
const SEEN = 13
const FIRST_WORD = 32

/** Rows refer to these by their place: new ones go to the end. */
const WORDS = (
  'type keyId address publicKey digest signature txHash chainId entropyHash coordinatorKey signedAt kind subject witness policy approvals ' +
  'nonce to value data gas maxFeePerGas maxPriorityFeePerGas source valueHex signatureHex timestamp sequence from digestSigned ' +
  'commitment transaction authorization off-chain address countersign/signing/v1 countersign/signing/v2 statement path leafIndex ' +
  'countersign-attestation/2 version coordinator release entropy issuedAt signer batch inclusion log scheme round chain ' +
  'intent proof kms quoteHex eventLog measurement mrTd rtmr0 rtmr1 rtmr2 rtmr3 tcbStatus quoteVerified mode collateral config bootId ' +
  'previous treeSize selfAttestation reportHex certificates ek ask ark vcek configHash fetchedAt hardware mock UpToDate 0x'
).split(' ')
const placeOf = new Map(WORDS.map((word, place) => [word, place]))

type Writer = { bytes: Buffer; length: number; seen: Map<string, number>; shared: Shared }
type Reader = { bytes: Buffer; at: number; seen: string[]; shared: Shared }

function remember(seen: Map<string, number>, text: string) {
  if (text.length >= LEAST_REPEATED && !seen.has(text)) seen.set(text, seen.size)
}

function write(writer: Writer, value: unknown): void {
  if (value === null) putByte(writer, tags.null)
  else if (typeof value === 'string') writeText(writer, value)
  else if (typeof value === 'boolean') putByte(writer, value ? tags.true : tags.false)
  else if (typeof value === 'number') writeNumber(writer, value)
  else if (Array.isArray(value)) {
    putTagged(writer, tags.list, value.length)
    for (const item of value) write(writer, item)
  } else {
    const members = Object.entries(value as object).filter(([, member]) => member !== undefined)
    putTagged(writer, tags.object, members.length)
    for (const [name, member] of members) {
      writeText(writer, name)
      write(writer, member)
    }
  }
}

function writeNumber(writer: Writer, value: number) {
  if (Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)) putTagged(writer, tags.integer, value)
  else {
    const text = JSON.stringify(value)
    putTagged(writer, tags.number, text.length)
    reserve(writer, text.length)
    writer.length += writer.bytes.write(text, writer.length)
  }
}

function writeText(writer: Writer, text: string) {
  const place = placeOf.get(text)
  if (place !== undefined) return putByte(writer, FIRST_WORD + place)
  if (text.length >= LEAST_REPEATED) {
    const { places } = writer.shared
    const before = places.get(text) ?? writer.seen.get(text)
    if (before !== undefined) return putTagged(writer, SEEN, places.has(text) ? before : places.size + before)
    writer.seen.set(text, writer.seen.size)
  }
  const [, digits, zeros = ''] = (text.length < 80 && DECIMALS.exec(text)) || []
  if (digits !== undefined) {
    putTagged(writer, DECIMAL, Number(digits))
    return putByte(writer, zeros.length)
  }
  if (text.length % 2 === 0 && HEX.test(text)) {
    if (text.startsWith('0x')) return putHex(writer, PREFIXED, text.slice(2))
    return putHex(writer, tags.hex, text)
  }
  const time = text.length === 24 && text.endsWith('Z') ? new Date(text) : undefined
  if (time !== undefined && time.getTime() >= 0 && time.toISOString() === text) {
    return putTagged(writer, TIME, time.getTime())
  }
  const hash = toCidHash(text)
  if (hash !== undefined) return putHex(writer, CID, hash)
  const bytes = Buffer.from(text)
  putTagged(writer, tags.text, bytes.length)
  reserve(writer, bytes.length)
  writer.length += bytes.copy(writer.bytes, writer.length)
}

/** Fifteen digits, which are exact as a number, and zeros. */
const DECIMALS = /^([1-9]\d{0,14}?|0)(0{0,60})$/
const HEX = /^(?:0x)?[0-9a-f]+$/

function putByte(writer: Writer, byte: number) {
  reserve(writer, 1)
  writer.bytes[writer.length++] = byte
}

/** The number in sevens of bits, the lowest first. */
function putTagged(writer: Writer, tag: number, value: number) {
  reserve(writer, 9)
  writer.bytes[writer.length++] = tag
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) writer.bytes[writer.length++] = 128 | (rest % 128)
  writer.bytes[writer.length++] = rest
}

function putHex(writer: Writer, tag: number, digits: string) {
  putTagged(writer, tag, digits.length / 2)
  reserve(writer, digits.length / 2)
  writer.length += writer.bytes.write(digits, writer.length, 'hex')
}

function reserve(writer: Writer, count: number) {
  if (writer.length + count <= writer.bytes.length) return
  const larger = Buffer.allocUnsafe(2 * (writer.length + count))
  larger.set(writer.bytes.subarray(0, writer.length))
  writer.bytes = larger
}

function read(reader: Reader): unknown {
  const tag = reader.bytes[reader.at]
  switch (tag) {
    case tags.null:
    case tags.false:
    case tags.true:
      reader.at += 1
      return tag === tags.null ? null : tag === tags.true
    case tags.integer:
      return takeNumber(reader)
    case tags.number:
      return JSON.parse(take(reader).toString())
    case tags.list:
      return Array.from({ length: takeNumber(reader) }, () => read(reader))
    case tags.object:
      return Object.fromEntries(Array.from({ length: takeNumber(reader) }, () => [readText(reader), read(reader)]))
    default:
      return readText(reader)
  }
}

function readText(reader: Reader): string {
  const tag = reader.bytes[reader.at] ?? tags.null
  const word = WORDS[tag - FIRST_WORD]
  if (word !== undefined) {
    reader.at += 1
    return word
  }
  const text = tag === SEEN ? takeSeen(reader) : takeText(reader, tag)
  if (text === undefined) throw new Error('packed JSON refers to a text that is not there')
  if (tag !== SEEN && text.length >= LEAST_REPEATED) reader.seen.push(text)
  return text
}

function takeSeen(reader: Reader): string | undefined {
  const place = takeNumber(reader)
  const { texts } = reader.shared
  return place < texts.length ? texts[place] : reader.seen[place - texts.length]
}

function takeText(reader: Reader, tag: number): string | undefined {
  switch (tag) {
    case DECIMAL:
      return `${takeNumber(reader)}${'0'.repeat(reader.bytes[reader.at++] ?? 0)}`
    case TIME:
      return new Date(takeNumber(reader)).toISOString()
    case PREFIXED:
      return `0x${take(reader).toString('hex')}`
    case tags.hex:
      return take(reader).toString('hex')
    case tags.text:
      return take(reader).toString()
    case CID:
      return fromCidHash(take(reader))
    default:
      return undefined
  }
}

function takeNumber(reader: Reader): number {
  reader.at += 1
  let value = 0
  for (let factor = 1; ; factor *= 128) {
    const byte = reader.bytes[reader.at++]
    if (byte === undefined) throw new Error('packed JSON ends early')
    value += factor * (byte & 127)
    if (byte < 128) return value
  }
}

function take(reader: Reader): Buffer {
  const length = takeNumber(reader)
  const bytes = reader.bytes.subarray(reader.at, reader.at + length)
  if (bytes.length !== length) throw new Error('packed JSON ends early')
  reader.at += length
  return bytes
}
