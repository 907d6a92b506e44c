import { expect, test } from 'vitest'
import { isAddress } from './isAddress.ts'

const address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

test.each<[string, boolean, unknown]>([
  ['its checksum', true, address],
  ['lower case', true, address.toLowerCase()],
  ['capitals, which have no checksum', true, `0x${address.slice(2).toUpperCase()}`],
  ['digits only', true, `0x${'12'.repeat(20)}`],
  ['a wrong checksum', false, address.replace('C8', 'c8')],
  ['a mistyped digit', false, address.replace('7099', '7098')],
  ['19 bytes', false, address.slice(0, -2)],
  ['21 bytes', false, `${address}00`],
  ['no 0x', false, address.slice(2)],
  ['0X', false, address.replace('0x', '0X')],
  ['a character that is not hex', false, address.replace('C8', 'G8')],
  ['a number', false, 7],
  ['nothing', false, undefined],
])('an address with %s: %s', (_, expected, value) => {
  expect(isAddress(value)).toBe(expected)
})
