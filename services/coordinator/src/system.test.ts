import { expect, test } from 'vitest'
import { systemRandom } from './system.ts'

test('returns the requested number of random bytes, never the same', () => {
  const lengths = Array.from({ length: 1_000 }, (_, index) => 16 + (index % 48))
  const drawn = lengths.map((length) => systemRandom(length))
  expect(drawn.map(({ length }) => length)).toEqual(lengths)
  expect(new Set(drawn.map((bytes) => Buffer.from(bytes).toString('hex'))).size).toBe(1_000)
  // No run of zeros, like erased bytes.
  expect(drawn.some((bytes) => bytes.join().includes('0,0,0,0,0'))).toBe(false)
})

test.each([0, 1, 4_095, 4_096, 4_097, 100_000])('returns %i bytes', (length) => {
  const bytes = systemRandom(length)
  expect(bytes).toHaveLength(length)
  expect(bytes.buffer.byteLength).toBe(length)
})
