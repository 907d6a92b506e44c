import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hmacSha256 } from './hkdf.ts'

test('RFC 4231 test case 2', () => {
  const mac = hmacSha256(Buffer.from('Jefe'), Buffer.from('what do ya want for nothing?'))
  expect(mac.toString('hex')).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843')
})

test('equals OpenSSL’s HMAC', () => {
  const bytes = (maxLength: number) => fc.uint8Array({ maxLength })
  fc.assert(
    fc.property(bytes(64), bytes(300), (key, data) => {
      return hmacSha256(key, data).equals(createHmac('sha256', key).update(data).digest())
    }),
  )
})

test('keys longer than a block have no use here', () => {
  expect(() => hmacSha256(new Uint8Array(65), new Uint8Array())).toThrow(RangeError)
})
