import { randomBytes } from 'node:crypto'
import { parseTimestamp } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { createFakeSatellite } from '../../../test/sign/entropy/entropy.ts'
import { checkSample, createEntropyKeys, isSampleSigned } from './checkSample.ts'

const now = Date.parse('2026-06-15T12:00:00.000Z')
const satellite = createFakeSatellite()
const options = {
  publicKeys: createEntropyKeys([satellite.publicKey]),
  now,
  maxAgeMs: 60_000,
  isSigned: true,
  allowUnsigned: false,
}
const good = satellite.createWitness({ timestampMs: now, sequence: 7 })

test('accepts a sample signed by the pinned key', () => {
  expect(checkSample(good, options)).toBeUndefined()
  expect(isSampleSigned(good)).toBe(true)
})

test('accepts any of several pinned keys', () => {
  const publicKeys = createEntropyKeys([createFakeSatellite().publicKey, satellite.publicKey])
  expect(checkSample(good, { ...options, publicKeys })).toBeUndefined()
})

test('the signature covers every bit of value, time and sequence', () => {
  const flip = (hex: string) => (hex.startsWith('0') ? `1${hex.slice(1)}` : `0${hex.slice(1)}`)
  const changes: Partial<Witness>[] = [
    { valueHex: flip(good.valueHex) },
    { signatureHex: flip(good.signatureHex) },
    { sequence: good.sequence + 1 },
    { timestamp: '2026-06-15T11:59:59.999Z' },
    { signatureHex: '00'.repeat(64) },
  ]
  for (const change of changes) expect(isSampleSigned({ ...good, ...change })).toBe(false)
})

test('rejects s beyond the order of the group (RFC 8032 §5.1.7)', () => {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const signature = Buffer.from(good.signatureHex, 'hex')
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
  const bytes = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()
  const signatureHex = signature.subarray(0, 32).toString('hex') + bytes.toString('hex')
  expect(isSampleSigned({ ...good, signatureHex })).toBe(false)
})

test('a valid signature by another key is foreign, whatever key the sample names', () => {
  const foreign = createFakeSatellite().createWitness({ timestampMs: now })
  expect(checkSample(foreign, options)).toBe('foreign_key')
  expect(isSampleSigned({ ...foreign, publicKey: satellite.publicKey })).toBe(false)
})

test('without a pinned key every sample is foreign', () => {
  expect(checkSample(good, { ...options, publicKeys: createEntropyKeys([]) })).toBe('foreign_key')
})

test.each([
  [60_000, undefined],
  [60_001, 'stale'],
  [-5_000, undefined],
  [-5_001, 'future'],
])('a sample %i ms old: %s', (ageMs, fault) => {
  expect(checkSample(satellite.createWitness({ timestampMs: now - ageMs }), options)).toBe(fault)
})

describe('a source that does not sign', () => {
  const unsigned = { ...good, signatureHex: '00'.repeat(64), publicKey: '00'.repeat(32) }

  test('is rejected unless allowed', () => {
    expect(checkSample(unsigned, { ...options, isSigned: false })).toBe('unsigned')
    expect(checkSample(unsigned, { ...options, isSigned: false, allowUnsigned: true })).toBeUndefined()
  })

  test('has the same time limits', () => {
    const allowed = { ...options, isSigned: false, allowUnsigned: true }
    expect(checkSample({ ...unsigned, timestamp: '2026-06-15T11:58:59.999Z' }, allowed)).toBe('stale')
    expect(checkSample({ ...unsigned, timestamp: '2026-06-15T12:00:05.001Z' }, allowed)).toBe('future')
  })

  test('does not allow a signing source to omit signatures', () => {
    expect(checkSample(unsigned, { ...options, allowUnsigned: true })).toBe('foreign_key')
  })
})

test.each<[string, Partial<Record<keyof Witness, unknown>>]>([
  ['a value in upper case', { valueHex: good.valueHex.toUpperCase().replace(/^./, 'A') }],
  ['a short value', { valueHex: good.valueHex.slice(2) }],
  ['a long signature', { signatureHex: `${good.signatureHex}00` }],
  ['a key with a prefix', { publicKey: `0x${good.publicKey}` }],
  ['half a sequence', { sequence: 0.5 }],
  ['a negative sequence', { sequence: -1 }],
  ['a sequence beyond exact numbers', { sequence: 2 ** 53 }],
  ['no source', { source: '' }],
  ['a source of control characters', { source: 'a\nb' }],
  ['a time without milliseconds', { timestamp: '2026-06-15T12:00:00Z' }],
  ['a day that does not exist', { timestamp: '2026-02-30T12:00:00.000Z' }],
  ['no time', { timestamp: 'yesterday' }],
])('%s is malformed', (_name, change) => {
  expect(checkSample({ ...good, ...change } as Witness, options)).toBe('malformed')
})

test('a time has exactly one spelling', () => {
  expect(parseTimestamp('2026-06-15T12:00:00.000Z')).toBe(now)
  for (const text of ['2026-06-15T12:00:00.000+00:00', '2026-06-15 12:00:00.000Z', '+012026-06-15T12:00:00.000Z', '']) {
    expect(parseTimestamp(text)).toBeUndefined()
  }
})

describe('pinned keys', () => {
  test.each([
    ['of small order: zero', '00'.repeat(32)],
    ['of small order: one', `01${'00'.repeat(31)}`],
    ['of small order, not canonical', `ee${'ff'.repeat(30)}7f`],
    ['not canonical: y above p', `f0${'ff'.repeat(30)}7f`],
    ['no point', `02${'00'.repeat(31)}`],
    ['short', '00'.repeat(31)],
    ['upper case', satellite.publicKey.replace(/^./, 'A')],
  ])('are refused when %s', (_name, publicKey) => {
    expect(() => createEntropyKeys([publicKey])).toThrow()
  })

  test('are parsed from the settings', () => {
    expect(createEntropyKeys([satellite.publicKey]).has(satellite.publicKey)).toBe(true)
    expect(createEntropyKeys([]).size).toBe(0)
    expect(() => createEntropyKeys([randomBytes(33).toString('hex')])).toThrow()
  })
})
