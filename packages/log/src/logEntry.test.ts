import { createHash } from 'node:crypto'
import { fromHex, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { decodeLogEntry, encodeLogEntry, hashLogEntry, LOG_ENTRY_BYTES, type LogEntry } from './logEntry.ts'

const malformed = withCode('log_entry_malformed')
const short = '0a'.repeat(16)
const long = '1b'.repeat(32)
const timeMs = 1_800_000_000_123
const time = timeMs.toString(16).padStart(16, '0')

const entries: [string, LogEntry][] = [
  ['00', { kind: 'boot', bootId: short, configHash: long, timeMs }],
  ['01', { kind: 'signature', keyId: short, leaf: long, timeMs }],
  ['02', { kind: 'dropped', keyId: short, leaf: long, timeMs }],
  ['03', { kind: 'unacknowledged', keyId: short, leaf: long, timeMs }],
]

describe('entries of the log', () => {
  test.each(entries)('0x%s: its bytes and leaf, and a round trip', (byte, entry) => {
    const hex = `${byte}${short}${long}${time}`
    expect(toHex(encodeLogEntry(entry))).toBe(hex)
    expect(decodeLogEntry(fromHex(hex))).toEqual(entry)
    expect(toHex(hashLogEntry(entry))).toBe(createHash('sha256').update(`00${hex}`, 'hex').digest('hex'))
  })

  test('reads bytes inside a larger buffer', () => {
    const [, entry] = entries[1] as (typeof entries)[number]
    const buffer = new Uint8Array(100).fill(0xff)
    buffer.set(encodeLogEntry(entry), 13)
    expect(decodeLogEntry(buffer.subarray(13, 13 + LOG_ENTRY_BYTES))).toEqual(entry)
  })

  test.each([
    ['nothing', ''],
    ['an unknown kind', `04${short}${long}${time}`],
    ['the last of the kinds there could be', `ff${short}${long}${time}`],
    ['a byte less', `01${short}${long}${time}`.slice(0, -2)],
    ['a byte more', `01${short}${long}${time}00`],
    ['a time beyond 2^53', `01${short}${long}0020000000000000`],
  ])('refused: %s', (_, hex) => {
    expect(() => decodeLogEntry(fromHex(hex))).toThrow(malformed)
  })

  test.each<[string, Partial<Record<string, unknown>>]>([
    ['another kind', { kind: 'released' }],
    ['a key id of 15 bytes', { keyId: '0a'.repeat(15) }],
    ['a key id in capitals', { keyId: '0A'.repeat(16) }],
    ['a leaf of 33 bytes', { leaf: '1b'.repeat(33) }],
    ['no leaf', { leaf: undefined }],
    ['a time with a fraction', { timeMs: 0.5 }],
    ['a time before 1970', { timeMs: -1 }],
    ['the members of a boot', { kind: 'boot' }],
  ])('not written: %s', (_, changed) => {
    const [, entry] = entries[1] as (typeof entries)[number]
    expect(() => encodeLogEntry({ ...entry, ...changed } as LogEntry)).toThrow(malformed)
  })
})
