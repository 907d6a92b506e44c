import { expect, test } from 'vitest'
import { concatBytes, equalBytes, isZero } from './bytes.ts'

test('concatBytes keeps the order and does not change its arguments', () => {
  const part = new Uint8Array([1, 2])
  const joined = concatBytes(part, new Uint8Array(), new Uint8Array([3]))
  joined[0] = 9
  expect([...joined]).toEqual([9, 2, 3])
  expect([...part]).toEqual([1, 2])
})

test('bytes are equal only with the same length and the same values', () => {
  expect(equalBytes(new Uint8Array([1, 2]), new Uint8Array([1, 2]))).toBe(true)
  expect(equalBytes(new Uint8Array([1, 2]), new Uint8Array([1, 3]))).toBe(false)
  expect(equalBytes(new Uint8Array([1, 2]), new Uint8Array([1, 2, 0]))).toBe(false)
  expect(equalBytes(new Uint8Array(), new Uint8Array())).toBe(true)
})

test('isZero is true only if every byte is zero', () => {
  expect(isZero(new Uint8Array(3))).toBe(true)
  expect(isZero(new Uint8Array([0, 0, 1]))).toBe(false)
})
