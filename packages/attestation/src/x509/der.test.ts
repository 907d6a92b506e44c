import { fromHex, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import {
  DerError,
  parseChildren,
  parseDer,
  tags,
  toBoolean,
  toNumber,
  toOid,
  toRawEcdsaSignature,
  toTime,
} from './der.ts'

const ascii = (text: string) => Buffer.from(text, 'latin1').toString('hex')
const element = (tag: string, content: string) =>
  fromHex(tag + (content.length / 2).toString(16).padStart(2, '0') + content)

describe('X.690 §10.1: one encoding of a length', () => {
  test('reads short and long forms', () => {
    expect(parseDer(fromHex('0401aa'), tags.octetString).value).toEqual(fromHex('aa'))
    const long = new Uint8Array(3 + 200)
    long.set([0x04, 0x81, 200])
    expect(parseDer(long, tags.octetString).value.length).toBe(200)
  })

  test.each([
    ['indefinite', '3080000000'],
    ['long form where the short one fits', '04810100'],
    ['leading zero in the length', '0482000100'],
    ['four length octets', '048400000001aa'],
    ['contents cut', '0405aabb'],
    ['header cut', '04'],
    ['length cut', '0482ff'],
    ['multi-byte tag', '1f810100'],
    ['a byte after the element', '0401aabb'],
    ['empty', ''],
  ])('rejects %s', (_, hex) => {
    expect(() => parseDer(fromHex(hex), tags.octetString)).toThrow(DerError)
  })

  test('rejects children that do not fill their parent', () => {
    expect(() => parseChildren(parseDer(fromHex('30040401aa04'), tags.sequence))).toThrow(DerError)
  })
})

describe('X.690 §8.3: integers in their shortest form', () => {
  test.each([
    ['020100', 0],
    ['02017f', 127],
    ['02020080', 128],
    ['0203010000', 65_536],
  ])('%s is %d', (hex, value) => expect(toNumber(parseDer(fromHex(hex), tags.integer), 0xffffff)).toBe(value))

  test.each(['0200', '02020001', '020180', '0202ff80', '020703ffffffffffff'])('rejects %s', (hex) => {
    expect(() => toNumber(parseDer(fromHex(hex), tags.integer), 0xffffff)).toThrow(DerError)
  })
})

test.each(['010101', '0102ffff', '0100'])('X.690 §11.1: %s is no boolean', (hex) => {
  expect(() => toBoolean(parseDer(fromHex(hex), tags.boolean))).toThrow(DerError)
})

describe('RFC 5280 §4.1.2.5: times', () => {
  test.each([
    ['17', '491231235959Z', '2049-12-31T23:59:59Z'],
    ['17', '500101000000Z', '1950-01-01T00:00:00Z'],
    ['17', '240229120000Z', '2024-02-29T12:00:00Z'],
    ['18', '20500101000000Z', '2050-01-01T00:00:00Z'],
  ])('%s %s is %s', (tag, text, iso) => {
    expect(toTime(parseDer(element(tag, ascii(text)), Number.parseInt(tag, 16)))).toBe(Date.parse(iso))
  })

  test.each([
    ['17', '4912312359Z'],
    ['17', '230229120000Z'],
    ['17', '231301000000Z'],
    ['17', '230101240000Z'],
    ['17', '230101006000Z'],
    ['17', '230101000060Z'],
    ['17', '230101000000+0000'],
    ['18', '20230101000000.5Z'],
    ['18', '230101000000Z'],
    ['04', '230101000000Z'],
  ])('rejects %s %s', (tag, text) => {
    expect(() => toTime(parseDer(element(tag, ascii(text)), Number.parseInt(tag, 16)))).toThrow(DerError)
  })
})

describe('object identifiers', () => {
  test.each([
    ['0603551d13', '2.5.29.19'],
    ['06092a864886f84d010d01', '1.2.840.113741.1.13.1'],
    ['060a2b060104019c78010301', '1.3.6.1.4.1.3704.1.3.1'],
    ['0603883703', '2.999.3'],
  ])('%s is %s', (hex, oid) => expect(toOid(parseDer(fromHex(hex), tags.oid))).toBe(oid))

  test.each(['0600', '06038055', '0603550180', '060380551d', '0607ff8080808080ff'])('rejects %s', (hex) => {
    expect(() => toOid(parseDer(fromHex(hex), tags.oid))).toThrow(DerError)
  })
})

describe('RFC 3279 §2.2.3: ECDSA signatures', () => {
  test('pads r and s, and keeps a high s', () => {
    const s = 'f'.repeat(64)
    expect(toHex(toRawEcdsaSignature(fromHex(`3026020105022100${s}`), 32))).toBe(`${'0'.repeat(63)}5${s}`)
  })

  test.each([
    ['three integers', '3009020101020102020103'],
    ['one integer', '3003020101'],
    ['negative r', '3006020181020101'],
    ['padded r', '300702020001020101'],
    ['r of 33 bytes', `3027022201${'00'.repeat(33)}020101`],
    ['trailing byte', '300602010102010100'],
  ])('rejects %s', (_, hex) => {
    expect(() => toRawEcdsaSignature(fromHex(hex), 32)).toThrow(DerError)
  })
})
