import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toField, toU8, toU32be, toU64be } from './fields.ts'
import { toHex } from './hex.ts'

describe('fields of a preimage', () => {
  test('writes integers big-endian in a fixed width', () => {
    expect([0, 1, 256, 0xffff_ffff].map((value) => toHex(toU32be(value)))).toEqual([
      '00000000',
      '00000001',
      '00000100',
      'ffffffff',
    ])
    expect([0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER].map((value) => toHex(toU64be(value)))).toEqual([
      '0000000000000000',
      '0000000000000001',
      '0000000100000000',
      '001fffffffffffff',
    ])
  })

  test.each([-1, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', 1n, null, undefined])(
    'rejects the integer %s',
    (value) => {
      expect(() => toU8(value as number)).toThrow(withCode('invalid_integer'))
      expect(() => toU32be(value as number)).toThrow(withCode('invalid_integer'))
      expect(() => toU64be(value as number)).toThrow(withCode('invalid_integer'))
    },
  )

  test('rejects 256 as a byte, and 2^32 as a u32', () => {
    expect(toHex(toU8(255))).toBe('ff')
    expect(() => toU8(256)).toThrow(withCode('invalid_integer'))
    expect(() => toU32be(2 ** 32)).toThrow(withCode('invalid_integer'))
  })

  test('rejects a byte string of another length', () => {
    const bytes = new Uint8Array(32)
    expect(toField('root', bytes, 32)).toBe(bytes)
    for (const wrong of [
      new Uint8Array(31),
      new Uint8Array(33),
      new Uint8Array(0),
      new Array(32).fill(0),
      '00'.repeat(16),
    ]) {
      expect(() => toField('root', wrong as Uint8Array, 32)).toThrow(withCode('invalid_length'))
    }
  })
})
