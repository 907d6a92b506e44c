import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { hashEntropy, isEntropyWitness, parseTimestamp, toEntropyMessage } from './entropy.ts'
import { toHex } from './hex.ts'

const sample = { value: new Uint8Array(32).fill(0x11), timestampMs: 0x0102030405, sequence: 7 }

test('a source’s signature covers tag, value, time and sequence', () => {
  const tag = Buffer.from('countersign/entropy/v1\0').toString('hex')
  expect(toHex(toEntropyMessage(sample))).toBe(`${tag}${'11'.repeat(32)}00000001020304050000000000000007`)
})

test('the hash of a sample is SHA-256 of its value', () => {
  expect(toHex(hashEntropy(sample.value))).toBe(createHash('sha256').update(sample.value).digest('hex'))
})

test('rejects a value of other than 32 bytes', () => {
  for (const length of [0, 31, 33]) {
    expect(() => toEntropyMessage({ ...sample, value: new Uint8Array(length) })).toThrow(withCode('invalid_length'))
    expect(() => hashEntropy(new Uint8Array(length))).toThrow(withCode('invalid_length'))
  }
})

test('rejects times and sequences that are not safe integers', () => {
  for (const wrong of [-1, 0.5, 2 ** 53, Number.NaN]) {
    expect(() => toEntropyMessage({ ...sample, timestampMs: wrong })).toThrow(withCode('invalid_integer'))
    expect(() => toEntropyMessage({ ...sample, sequence: wrong })).toThrow(withCode('invalid_integer'))
  }
})

test('accepts a time in one spelling, from 1970 on', () => {
  expect(parseTimestamp('2026-06-15T12:00:00.000Z')).toBe(Date.UTC(2026, 5, 15, 12))
  for (const text of ['2026-06-15T12:00:00Z', '2026-02-30T12:00:00.000Z', '1969-12-31T23:59:59.999Z', '']) {
    expect(parseTimestamp(text)).toBeUndefined()
  }
})

test('accepts exactly the times that Date spells the same, for every day, hour, minute and second, valid or not', () => {
  const pad = (value: number, length = 2) => String(value).padStart(length, '0')
  const isSpeltAlike = (text: string) => {
    const date = new Date(text)
    return !Number.isNaN(date.getTime()) && date.toISOString() === text
  }
  for (const year of [1970, 1972, 2000, 2023, 2024, 2100, 9999]) {
    for (let month = 0; month <= 13; month += 1) {
      for (let day = 0; day <= 32; day += 1) {
        const text = `${year}-${pad(month)}-${pad(day)}T00:00:00.000Z`
        expect(parseTimestamp(text)).toBe(isSpeltAlike(text) ? Date.parse(text) : undefined)
      }
    }
  }
  for (let part = 0; part <= 99; part += 1) {
    for (const time of [
      `${pad(part)}:00:00.000`,
      `00:${pad(part)}:00.000`,
      `00:00:${pad(part)}.000`,
      `24:00:00.${pad(part, 3)}`,
    ]) {
      const text = `2026-12-31T${time}Z`
      expect(parseTimestamp(text)).toBe(isSpeltAlike(text) ? Date.parse(text) : undefined)
    }
  }
  for (const text of [
    ...[
      '+002026-06-15T12:00:00.000Z',
      '-000001-06-15T12:00:00.000Z',
      '0000-01-01T00:00:00.000Z',
      '02026-06-15T12:00:00.000Z',
    ],
    ...[
      '2026-06-15t12:00:00.000Z',
      '2026-06-15T12:00:00.000z',
      '2026-06-15T12:00:00.000',
      '2026-06-15T12:00:00.000+00:00',
    ],
    ...[
      '2026-06-15T12:00:00.000Z\n',
      ' 2026-06-15T12:00:00.000Z',
      '2026-06-15T12:00:00.0000Z',
      '2026-06-15 12:00:00.000Z',
    ],
    ...['٢٠٢٦-06-15T12:00:00.000Z', '2026-06-15'],
  ]) {
    expect(parseTimestamp(text)).toBeUndefined()
  }
})

test('accepts a sample with exactly its members, each in its form', () => {
  const witness = {
    source: 'a satellite',
    valueHex: '11'.repeat(32),
    signatureHex: '22'.repeat(64),
    publicKey: '33'.repeat(32),
    timestamp: '2026-06-15T12:00:00.000Z',
    sequence: 0,
  }
  expect(isEntropyWitness(witness)).toBe(true)
  const { sequence: _, ...less } = witness
  const wrong = [null, [], less, { ...witness, more: 1 }, { ...witness, source: '' }, { ...witness, source: 'ü' }]
  const members = [{ valueHex: '11' }, { signatureHex: '' }, { publicKey: 'AA'.repeat(32) }, { timestamp: 'now' }]
  const numbers = [-1, 0.5, 2 ** 53, '1'].map((sequence) => ({ sequence }))
  for (const value of [...wrong, ...[...members, ...numbers].map((change) => ({ ...witness, ...change }))]) {
    expect(isEntropyWitness(value)).toBe(false)
  }
})
