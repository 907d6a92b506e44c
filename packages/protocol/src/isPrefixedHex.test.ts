import { expect, test } from 'vitest'
import { isPrefixedHex } from './isPrefixedHex.ts'

test('isPrefixedHex accepts 0x and whole bytes in either case, of the given length', () => {
  for (const value of ['0x', '0xab', '0xAB', '0xaBcD']) expect([value, isPrefixedHex(value)]).toEqual([value, true])
  const texts = ['', 'ab', '0Xab', '0xa', '0xabc', '0xzz', ' 0xab', '0xab\n', '0xa\n']
  for (const value of [...texts, 0, null, undefined, ['0xab'], new String('0xab')]) {
    expect([value, isPrefixedHex(value)]).toEqual([value, false])
  }
  expect(isPrefixedHex('0xaBcD', 2)).toBe(true)
  expect(isPrefixedHex('0x', 0)).toBe(true)
  for (const bytes of [0, 1, 3]) expect([bytes, isPrefixedHex('0xabcd', bytes)]).toEqual([bytes, false])
})
