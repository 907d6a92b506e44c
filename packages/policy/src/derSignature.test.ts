import { fromHex, toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { toDer } from '../test/passkey.ts'
import { fromDerSignature } from './derSignature.ts'

const read = (hex: string) => {
  const bytes = fromDerSignature(fromHex(hex))
  return bytes === undefined ? undefined : toHex(bytes)
}
const word = (hex: string) => hex.padStart(64, '0')

test.each<[string, bigint, bigint]>([
  ['one', 1n, 1n],
  ['the largest number without a zero before it', 0x7fn, 2n ** 255n - 1n],
  ['the smallest with one', 0x80n, 2n ** 255n],
  ['all bits', 2n ** 256n - 1n, 2n ** 256n - 1n],
  ['zero, which the verification refuses', 0n, 0n],
])('%s', (_, r, s) => {
  // X.690 §8.3: zero is a single zero byte, which the rule for leading zeros must accept.
  const expected = r === 0n ? undefined : word(r.toString(16)) + word(s.toString(16))
  expect(read(toHex(toDer({ r, s })))).toBe(expected)
})

test.each([
  ['nothing', ''],
  ['only the tag', '30'],
  ['an empty sequence', '3000'],
  ['a set', '3106020101020101'],
  ['one integer', '3003020101'],
  ['three integers', '3009020101020101020101'],
  ['a byte after the end', '300602010102010100'],
  ['a byte after the integers, inside', '300702010102010100'],
  ['a length that is too short', '3005020101020101'],
  ['a length that is too long', '3007020101020101'],
  ['a length of two bytes', '308106020101020101'],
  ['a length without an end', '3080020101020101'],
  ['an integer without bytes', '3005020002010100'],
  ['a leading zero that is not needed', '300702020001020101'],
  ['two leading zeros', '30080203000080020101'],
  ['a negative number', '3006020180020101'],
  ['a bit string', '3006030101020101'],
  ['an integer beyond the end', '3006020501020101'],
  ['a number of 33 bytes', `30260221${'01'.repeat(33)}020101`],
])('refused: %s', (_, hex) => {
  expect(read(hex)).toBeUndefined()
})
