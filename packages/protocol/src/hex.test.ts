import { expect, test } from 'vitest'
import { fromHex, toHex } from './hex.ts'

test('hex is lower case without a prefix, both ways', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  expect(toHex(bytes)).toBe(Buffer.from(bytes).toString('hex'))
  expect(fromHex(toHex(bytes))).toEqual(bytes)
  expect(toHex(new Uint8Array())).toBe('')
})

test.each(['0', 'AB', 'aB', '0x00', ' 00', '0g', '0`', '0/', '0:', 'é0'])('%j is not hex', (text) => {
  expect(() => fromHex(text)).toThrow(expect.objectContaining({ code: 'invalid_hex' }))
})
