import { createHash } from 'node:crypto'
import { verifyEs256 as verifyByNoble } from '@countersign/policy'
import { concatBytes } from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'
import { expect, test } from 'vitest'
import { createVerifyEs256 } from './es256.ts'

const verifyEs256 = createVerifyEs256()
const secretKey = createHash('sha256').update('a key for tests').digest()
const publicKey = p256.getPublicKey(secretKey, false)
const message = new TextEncoder().encode('message')
const signature = p256.sign(message, secretKey, { lowS: true })
const { n } = p256.Point.CURVE()
const toBytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
const [r, s] = [signature.subarray(0, 32), signature.subarray(32)]
const highS = concatBytes(r, toBytes(n - BigInt(`0x${Buffer.from(s).toString('hex')}`)))
/** The first of many whose r starts with a zero byte, so that its integer is shorter. */
const { message: shortMessage, signature: shortSignature } = findShort()
const flipped = (bytes: Uint8Array, at: number) => bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))

function findShort() {
  for (let count = 0; ; count++) {
    const message = new TextEncoder().encode(`message ${count}`)
    const signature = p256.sign(message, secretKey)
    if (signature[0] === 0) return { message, signature }
  }
}

// The verifier uses noble's implementation. Both must accept the same.
test.each<[string, boolean, Uint8Array, Uint8Array, Uint8Array]>([
  ['a signature', true, publicKey, signature, message],
  ['one with a high s', true, publicKey, highS, message],
  ['one whose r is short', true, publicKey, shortSignature, shortMessage],
  ['another message', false, publicKey, signature, flipped(message, 0)],
  ['another r', false, publicKey, flipped(signature, 31), message],
  ['another s', false, publicKey, flipped(signature, 63), message],
  ['r of zero', false, publicKey, concatBytes(new Uint8Array(32), s), message],
  ['s of zero', false, publicKey, concatBytes(r, new Uint8Array(32)), message],
  ['r of n', false, publicKey, concatBytes(toBytes(n), s), message],
  ['s of n', false, publicKey, concatBytes(r, toBytes(n)), message],
  ['r and s of zero', false, publicKey, new Uint8Array(64), message],
  ['a signature cut short', false, publicKey, signature.subarray(0, 63), message],
  ['no signature', false, publicKey, new Uint8Array(), message],
  [
    'another key',
    false,
    p256.getPublicKey(
      secretKey.map((byte) => byte ^ 1),
      false,
    ),
    signature,
    message,
  ],
  ['a key that is no point', false, flipped(publicKey, 64), signature, message],
  ['a key of zeros', false, new Uint8Array(65), signature, message],
  ['a key cut short', false, publicKey.subarray(0, 64), signature, message],
])('%s: %s, by OpenSSL and by noble', (_, expected, key, bytes, text) => {
  // Again, with the cached key.
  for (const _ of [1, 2]) expect(verifyEs256(key, bytes, text)).toBe(expected)
  expect(verifyByNoble(key, bytes, text)).toBe(expected)
})
