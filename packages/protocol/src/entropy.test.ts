import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { hashEntropy, toEntropyMessage } from './entropy.ts'
import { toHex } from './hex.ts'

const sample = { value: new Uint8Array(32).fill(0x11), timestampMs: 0x0102030405, sequence: 7 }

test('a satellite signs tag, value, time and sequence', () => {
  const tag = Buffer.from('countersign/entropy/v1\0').toString('hex')
  expect(toHex(toEntropyMessage(sample))).toBe(`${tag}${'11'.repeat(32)}00000001020304050000000000000007`)
})

test('a sample is named by its SHA-256', () => {
  expect(toHex(hashEntropy(sample.value))).toBe(createHash('sha256').update(sample.value).digest('hex'))
})

test('a value has exactly 32 bytes', () => {
  for (const length of [0, 31, 33]) {
    expect(() => toEntropyMessage({ ...sample, value: new Uint8Array(length) })).toThrow(withCode('invalid_length'))
    expect(() => hashEntropy(new Uint8Array(length))).toThrow(withCode('invalid_length'))
  }
})

test('time and sequence are integers that JSON carries exactly', () => {
  for (const wrong of [-1, 0.5, 2 ** 53, Number.NaN]) {
    expect(() => toEntropyMessage({ ...sample, timestampMs: wrong })).toThrow(withCode('invalid_integer'))
    expect(() => toEntropyMessage({ ...sample, sequence: wrong })).toThrow(withCode('invalid_integer'))
  }
})
