import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { packBytes, unpackBytes } from './packBytes.ts'

const hex = (bytes: number) => randomBytes(bytes).toString('hex')

test('restores any bytes', () => {
  for (const bytes of [Buffer.of(), Buffer.from('{"a":1,"a":1}'), randomBytes(40_000), Buffer.alloc(300_000)]) {
    expect(unpackBytes(packBytes(bytes)).equals(bytes)).toBe(true)
  }
})

test('known bytes take only a few bytes', () => {
  const text = hex(500)
  const known = [text, randomBytes(30)]
  const packed = packBytes(text, known)
  expect(packed.length).toBeLessThan(24)
  expect(unpackBytes(packed, known).toString()).toBe(text)
})

test('hex takes about half', () => {
  expect(packBytes(hex(1_000)).length).toBeLessThan(1_200)
})

test('earlier bytes stay readable: the common text is unchanged', () => {
  const stored = 'c39102f0990c32001acc8646c441442c9ad70200'
  const value = { kind: 'transaction', type: 'countersign/signing/v2', to: `0x${'12'.repeat(20)}`, nonce: 7 }
  expect(JSON.parse(unpackBytes(Buffer.from(stored, 'hex')).toString())).toEqual(value)
})

test('rejects truncated bytes', () => {
  const packed = packBytes(hex(100))
  for (let length = 0; length < packed.length; length++) {
    expect(() => unpackBytes(packed.subarray(0, length))).toThrow()
  }
})
