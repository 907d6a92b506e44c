import fc from 'fast-check'
import { hashMessage as hashWithViem } from 'viem'
import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { type Hex, toHex } from './hex.ts'
import { hashMessage, MAX_OFF_CHAIN_BYTES } from './message.ts'

const ENVELOPE = '{"message":"0x"}'.length

test('EIP-191, version 0x45: hashes 2,000 random messages like viem, in either case', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, isUpper) => {
      const digits = isUpper ? toHex(bytes).toUpperCase() : toHex(bytes)
      expect(`0x${toHex(hashMessage(`0x${digits}`))}`).toBe(hashWithViem({ raw: bytes }))
    }),
    { numRuns: 2_000 },
  )
})

test('the digest of "hello", and of the empty message', () => {
  expect(toHex(hashMessage('0x68656c6c6f'))).toBe('50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750')
  expect(toHex(hashMessage('0x'))).toBe('5f35dce98ba4fba25530a026ed80b2cecdaa31091ba4958b99b52ea1d068adad')
})

test('the length is in bytes and in decimal', () => {
  for (const length of [9, 10, 99, 100, 999, 1_000, 9_999, 10_000]) {
    const raw: Hex = `0x${'ab'.repeat(length)}`
    expect(`0x${toHex(hashMessage(raw))}`).toBe(hashWithViem({ raw }))
  }
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['text', 'hello'],
  ['hex without 0x', '68656c6c6f'],
  ['half a byte', '0x6'],
  ['0X', '0X68'],
  ['white space', '0x68 '],
  ['bytes', new Uint8Array(5)],
  ['an object', { raw: '0x68' }],
  ['half a character', '0x\ud800'],
])('refused: %s', (_, message) => {
  expect(() => hashMessage(message as Hex)).toThrow(withCode('invalid_message'))
})

test('hashes a body of 32 KiB, and rejects one more byte as too large', () => {
  const longest: Hex = `0x${'00'.repeat((MAX_OFF_CHAIN_BYTES - ENVELOPE) / 2)}`
  expect(`0x${toHex(hashMessage(longest))}`).toBe(hashWithViem({ raw: longest }))
  expect(() => hashMessage(`${longest}00`)).toThrow(withCode('message_too_large'))
})
