import { expect, test, vi } from 'vitest'
import { fromHex, isHex, toHex } from './hex.ts'

test('hex is lower case without a prefix, both ways', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  expect(toHex(bytes)).toBe(Buffer.from(bytes).toString('hex'))
  expect(fromHex(toHex(bytes))).toEqual(bytes)
  expect(toHex(bytes.subarray(10, 12))).toBe('0a0b')
  expect(toHex(new Uint8Array())).toBe('')
})

test('hex is the same where there is no Buffer', async () => {
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
  '%j is not hex',
  (text) => {
    expect(() => fromHex(text)).toThrow(expect.objectContaining({ code: 'invalid_hex' }))
  },
)

test('isHex: lower-case, whole bytes, of the length that is asked for, and never empty', () => {
  expect(['00', 'abcdef01'].every((text) => isHex(text))).toBe(true)
  expect(isHex('abcd', 2)).toBe(true)
  for (const value of ['', '0', 'AB', '0x00', 'zz', ' 00', '00\n', 0, null, undefined, ['00'], new String('00')]) {
    expect(isHex(value)).toBe(false)
  }
  expect(isHex('abcd', 1)).toBe(false)
  expect(isHex('ab\n', 1)).toBe(false)
})
