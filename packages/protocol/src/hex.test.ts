import { expect, test, vi } from 'vitest'
import { fromHex, fromPrefixedHex, isHex, isLowerPrefixedHex, toHex, toPrefixedHex } from './hex.ts'

test('reads and writes lower-case hex without a prefix', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  expect(toHex(bytes)).toBe(Buffer.from(bytes).toString('hex'))
  expect(fromHex(toHex(bytes))).toEqual(bytes)
  expect(toHex(bytes.subarray(10, 12))).toBe('0a0b')
  expect(toHex(new Uint8Array())).toBe('')
})

test('reads and writes the same hex without Buffer', async () => {
  vi.stubGlobal('Buffer', undefined)
  vi.resetModules()
  try {
    const plain = await import('./hex.ts')
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    expect(plain.toHex).not.toBe(toHex)
    expect(plain.toHex(bytes)).toBe(toHex(bytes))
    expect(plain.toHex(bytes.subarray(10, 20))).toBe(toHex(bytes.subarray(10, 20)))
    expect(plain.toHex(new Uint8Array())).toBe('')
  } finally {
    vi.unstubAllGlobals()
    vi.resetModules()
  }
})

test.each(['0', 'AB', 'aB', '0x00', ' 00', '0g', 'g0', '0`', '0/', '0:', 'é0', '0é', 'Ā0', '0\u{1f600}0'])(
  'rejects %j',
  (text) => {
    expect(() => fromHex(text)).toThrow(expect.objectContaining({ code: 'invalid_hex' }))
  },
)

test('isHex accepts lower case and whole bytes, of the given length, and never the empty string', () => {
  expect(['00', 'abcdef01'].every((text) => isHex(text))).toBe(true)
  expect(isHex('abcd', 2)).toBe(true)
  for (const value of ['', '0', 'AB', '0x00', 'zz', ' 00', '00\n', 0, null, undefined, ['00'], new String('00')]) {
    expect(isHex(value)).toBe(false)
  }
  expect(isHex('abcd', 1)).toBe(false)
  expect(isHex('ab\n', 1)).toBe(false)
})

test('writes lower-case hex with 0x, and reads either case', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  expect(toPrefixedHex(bytes)).toBe(`0x${Buffer.from(bytes).toString('hex')}`)
  expect(toPrefixedHex(bytes.subarray(10, 12))).toBe('0x0a0b')
  expect(toPrefixedHex(new Uint8Array())).toBe('0x')
  expect(fromPrefixedHex(toPrefixedHex(bytes))).toEqual(bytes)
  expect(fromPrefixedHex('0xaBCd')).toEqual(Uint8Array.of(0xab, 0xcd))
})

test('isLowerPrefixedHex accepts 0x and lower case, of the given length', () => {
  expect(isLowerPrefixedHex('0xab', 1)).toBe(true)
  expect(isLowerPrefixedHex('0xabcdef01', 4)).toBe(true)
  const texts = ['', '0x', 'ab', 'abab', '0Xab', '0xAB', '0xaB', '0xa', '0xabcd', '0xzz', '0xa\n']
  for (const value of [...texts, 0, null, undefined, ['0xab'], new String('0xab')]) {
    expect([value, isLowerPrefixedHex(value, 1)]).toEqual([value, false])
  }
})
