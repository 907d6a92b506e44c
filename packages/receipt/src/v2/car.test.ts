import { createHash } from 'node:crypto'
import { MAX_BLOCK_BYTES } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { issueGolden } from '../../spec/createSpecFiles.ts'
import { toCid } from '../cid.ts'
import { ReceiptError } from '../errors.ts'
import {
  CAR_HEADER_BYTES,
  encodeCar,
  encodeCarHeader,
  encodeCarSection,
  encodeReceiptCar,
  MAX_CAR_BYTES,
  measureCarSection,
  parseCar,
  parseCarHeader,
  parseCarSection,
  parseReceiptCar,
} from './car.ts'

const block = (text: string) => new TextEncoder().encode(text)
const blocks = [block('one'), block('two'), new Uint8Array(200).fill(3)] as const
const car = encodeCar(blocks)
const malformed = expect.objectContaining({ code: 'car_malformed' })
const mismatch = expect.objectContaining({ code: 'car_mismatch' })

/** A file by the specification, written by hand. */
function writeCar(root: Uint8Array, sections: (readonly [cid: Buffer, data: Uint8Array])[], head?: Buffer): Buffer {
  const header = head ?? Buffer.concat([Buffer.from('3aa265726f6f747381d82a582500', 'hex'), cidOf(root), VERSION_1])
  const written = sections.map(([cid, data]) => Buffer.concat([varint(cid.length + data.length), cid, data]))
  return Buffer.concat([header, ...written])
}

const VERSION_1 = Buffer.from('6776657273696f6e01', 'hex')
const cidOf = (data: Uint8Array) =>
  Buffer.concat([Buffer.from('01551220', 'hex'), createHash('sha256').update(data).digest()])
const varint = (value: number): Buffer =>
  value < 0x80 ? Buffer.of(value) : Buffer.concat([Buffer.of((value & 0x7f) | 0x80), varint(value >>> 7)])
const section = (data: Uint8Array) => [cidOf(data), data] as const

describe('CAR, version 1', () => {
  test('matches the specification', () => {
    expect(Buffer.from(car).toString('hex')).toBe(writeCar(blocks[0], blocks.map(section)).toString('hex'))
  })

  test('returns blocks with their CIDs, in order', () => {
    const parsed = parseCar(car)
    expect(parsed.root).toBe(toCid(blocks[0]))
    expect([...parsed.blocks]).toEqual(blocks.map((one) => [toCid(one), one]))
  })

  test('accepts the root in any position', () => {
    const parsed = parseCar(writeCar(blocks[1], blocks.map(section)))
    expect(parsed.root).toBe(toCid(blocks[1]))
  })

  test('accepts a block of 256 KiB, and one of a byte', () => {
    const all = [new Uint8Array(MAX_BLOCK_BYTES), Uint8Array.of(1)]
    expect([...parseCar(encodeCar(all)).blocks.values()]).toEqual(all)
  })

  const [one, two] = blocks
  const dagPb = Buffer.concat([Buffer.from('01701220', 'hex'), cidOf(two).subarray(4)])
  const twoRoots = Buffer.concat([
    Buffer.from('6324a265726f6f747382d82a582500', 'hex'),
    cidOf(one),
    Buffer.from('d82a582500', 'hex'),
    cidOf(two),
    VERSION_1,
  ])
  const version2 = Buffer.concat([Buffer.from('3aa265726f6f747381d82a582500', 'hex'), cidOf(one), VERSION_1.with(8, 2)])
  const dagPbRoot = Buffer.concat([Buffer.from('3aa265726f6f747381d82a582500', 'hex'), dagPb, VERSION_1])
  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['a root of another codec', writeCar(two, blocks.map(section), dagPbRoot)],
    ['two roots', writeCar(one, blocks.map(section), twoRoots)],
    ['version 2', writeCar(one, blocks.map(section), version2)],
    ['a block twice', writeCar(one, [section(one), section(two), section(two)])],
    ['an empty block', writeCar(one, [section(one), section(new Uint8Array())])],
    ['a block that is too large', writeCar(one, [section(one), section(new Uint8Array(MAX_BLOCK_BYTES + 1))])],
    ['a byte after the end', Buffer.concat([car, Buffer.of(0)])],
    ['zeros after the end', Buffer.concat([car, Buffer.alloc(64)])],
    [
      'a length in another spelling',
      Buffer.concat([car, Buffer.of(0xa7, 0x80, 0x00), cidOf(block('x')), block('xyz')]),
    ],
    ['a length without an end', Buffer.concat([car, Buffer.alloc(8, 0xff)])],
    ['a section shorter than a CID', Buffer.concat([car, Buffer.of(3), block('abc')])],
    [
      'too many blocks',
      writeCar(
        one,
        Array.from({ length: 17 }, (_, index) => section(Uint8Array.of(index))),
      ),
    ],
    ['too many bytes', new Uint8Array(MAX_CAR_BYTES + 1)],
  ])('%s is refused', (_, bytes) => {
    expect(() => parseCar(Uint8Array.from(bytes))).toThrow(malformed)
  })

  test.each<[string, Uint8Array]>([
    ['only a header', car.slice(0, 59)],
    ['a root that is not there', writeCar(block('three'), blocks.map(section))],
    ['a block under another’s CID', writeCar(one, [section(one), [cidOf(two), block('changed')]])],
    ['a CID of another codec', writeCar(one, [section(one), [dagPb, two]])],
  ])('rejects %s', (_, bytes) => {
    expect(() => parseCar(Uint8Array.from(bytes))).toThrow(mismatch)
  })

  test('rejects a file that is cut anywhere, or changed at any byte', () => {
    for (let length = 0; length < car.length; length++) {
      // Cut at the end of a section, it is a valid file with fewer blocks.
      const isWhole = length === 59 + 1 + 36 + 3 || length === 59 + 2 * (1 + 36 + 3)
      if (!isWhole) expect(() => parseCar(car.slice(0, length))).toThrow(length === 59 ? mismatch : malformed)
    }
    for (let index = 0; index < car.length; index++) {
      for (const mask of [1, 0x80]) {
        const changed = car.slice()
        changed[index] = (changed[index] as number) ^ mask
        expect(() => parseCar(changed)).toThrow(ReceiptError)
      }
    }
    for (const index of [99, car.length - 1]) {
      expect(() => parseCar(car.with(index, (car[index] as number) ^ 1))).toThrow(mismatch)
    }
  })

  test('rejects writing no block, a block twice, or one that is too large', () => {
    for (const wrong of [[], [one, one], [new Uint8Array(MAX_BLOCK_BYTES + 1)], [new Uint8Array()]]) {
      expect(() => encodeCar(wrong)).toThrow(malformed)
    }
  })
})

describe('CAR, version 1, in pieces', () => {
  const [one] = blocks
  const header = encodeCarHeader(toCid(one))
  const sections = blocks.map((each) => encodeCarSection(toCid(each), each))

  test('gives the same file, with a header of fixed length', () => {
    expect(Buffer.concat([header, ...sections]).equals(car)).toBe(true)
    for (const each of blocks) expect(encodeCarHeader(toCid(each))).toHaveLength(CAR_HEADER_BYTES)
  })

  test('three bytes of a section give its length, and the section its block', () => {
    expect(parseCarHeader(header)).toBe(toCid(one))
    for (const each of [...blocks, new Uint8Array(MAX_BLOCK_BYTES)]) {
      const written = encodeCarSection(toCid(each), each)
      expect(measureCarSection(written.subarray(0, 3))).toBe(written.length)
      expect(parseCarSection(written)).toEqual({ cid: toCid(each), block: each, end: written.length })
    }
  })

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['a section shorter than a CID', Uint8Array.of(3, 0, 0)],
    ['an empty block', Uint8Array.of(36, 0, 0)],
    ['a block that is too large', varint(36 + MAX_BLOCK_BYTES + 1)],
    ['a length in another spelling', Uint8Array.of(0xa7, 0x80, 0x00)],
    ['a length without an end', Uint8Array.of(0xff, 0xff, 0xff)],
  ])('%s is refused by its length', (_, bytes) => {
    expect(() => measureCarSection(bytes)).toThrow(malformed)
  })

  test('rejects writing under another kind of CID', () => {
    expect(() => encodeCarHeader('')).toThrow(malformed)
    expect(() => encodeCarSection('bafkqaaa', one)).toThrow(malformed)
  })
})

describe('the CAR of a receipt', async () => {
  const issue = await issueGolden({ kind: 'transaction' })
  const { bytes, collateral, blocks: named } = issue

  test('has all its blocks, and returns them by name', () => {
    expect(parseReceiptCar(encodeReceiptCar(issue))).toEqual({ bytes, collateral, blocks: named })
  })

  test('can be read without some blocks: the steps report what is missing', () => {
    const { batch, release } = named
    expect(parseReceiptCar(encodeCar([bytes]))).toEqual({ bytes, blocks: {} })
    expect(parseReceiptCar(encodeCar([bytes, batch, release]))).toEqual({ bytes, blocks: { batch, release } })
  })

  test('rejects a block that the receipt does not name', async () => {
    const other = await issueGolden({ kind: 'message' })
    expect(() => parseReceiptCar(encodeCar([bytes, block('stranger')]))).toThrow(mismatch)
    expect(() => parseReceiptCar(encodeCar([bytes, other.blocks.batch]))).toThrow(mismatch)
    expect(() => parseReceiptCar(encodeCar([bytes, named.coordinator]))).toThrow(mismatch)
  })

  test('rejects a root that is not a receipt', () => {
    expect(() => parseReceiptCar(encodeCar([named.batch, bytes]))).toThrow(
      expect.objectContaining({ code: 'receipt_version_unsupported' }),
    )
  })
})
