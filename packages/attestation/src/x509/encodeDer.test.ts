import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { bitString, constructed, encode, integer, objectIdentifier, primitive, time } from './encodeDer.ts'

describe('DER writer (X.690)', () => {
  test('§10.1: lengths take the fewest octets', () => {
    const header = (length: number) => toHex(encode(0x04, new Uint8Array(length)).subarray(0, -length || undefined))
    expect([1, 127, 128, 255, 256, 65536].map(header)).toEqual([
      '0401',
      '047f',
      '048180',
      '0481ff',
      '04820100',
      '0483010000',
    ])
    expect(toHex(encode(0x05))).toBe('0500')
  })

  test('§8.3: integers take the fewest octets and stay positive', () => {
    expect([0, 1, 127, 128, 255, 256, 0x8000n].map((value) => toHex(integer(value)))).toEqual([
      '020100',
      '020101',
      '02017f',
      '02020080',
      '020200ff',
      '02020100',
      '0203008000',
    ])
  })

  test('§8.19: object identifiers', () => {
    expect(toHex(objectIdentifier('1.2.840.113741.1.13.1'))).toBe('06092a864886f84d010d01')
    expect(toHex(objectIdentifier('1.3.6.1.4.1.3704.1.3.8'))).toBe('060a2b060104019c78010308')
    expect(toHex(objectIdentifier('2.16.840.1.101.3.4.2.2'))).toBe('0609608648016503040202')
  })

  test('§8.6 and §8.14: bit strings and tags', () => {
    expect(toHex(bitString(Uint8Array.of(0xc0), 6))).toBe('030206c0')
    expect(toHex(constructed(3, integer(1)))).toBe('a303020101')
    expect(toHex(primitive(6, Uint8Array.of(0x61)))).toBe('860161')
  })

  test('RFC 5280 §4.1.2.5: UTCTime ends with 2049, and fractions of seconds are cut', () => {
    const text = (date: string) => new TextDecoder().decode(time(new Date(date)))
    expect(text('2049-12-31T23:59:59.999Z')).toBe('\x17\x0d491231235959Z')
    expect(text('2050-01-01T00:00:00Z')).toBe('\x18\x0f20500101000000Z')
  })
})
