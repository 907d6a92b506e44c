import { encodeLogEntry, type StatementEntry } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { findInLog } from './logEntries.ts'
import type { Placing } from './request.ts'

const KEY = '0a'.repeat(16)
const [LEAF, OTHER] = ['1b'.repeat(32), '2c'.repeat(32)] as const
const TIME = 1_800_000_000_123

const encode = (changes: Partial<StatementEntry> = {}) =>
  toHex(encodeLogEntry({ kind: 'signature', keyId: KEY, leaf: LEAF, timeMs: TIME, ...changes }))
const boot = toHex(encodeLogEntry({ kind: 'boot', bootId: KEY, configHash: LEAF, timeMs: TIME }))

/** Asked for under a key, and signed as the second leaf of a batch. */
const placed = { item: { keyId: KEY }, batch: { leaves: [OTHER, LEAF] }, leafIndex: 1 } as unknown as Placing
const find = (...entries: string[]) => findInLog({ origin: '', from: 7, entries, checkpoint: '' }, [placed])

test.each([TIME, 0, 1, Number.MAX_SAFE_INTEGER])('an entry as it is encoded is found, with its time: %i', (timeMs) => {
  const { logged, missing } = find(
    boot,
    encode({ leaf: OTHER }),
    encode({ timeMs }),
    encode({ keyId: '0b'.repeat(16) }),
  )
  expect(logged).toEqual([{ ...placed, leaf: LEAF, place: { index: 9, timeMs } }])
  expect(missing).toEqual([])
})

test.each([
  ['of another key', encode({ keyId: '0b'.repeat(16) })],
  ['of another leaf', encode({ leaf: OTHER })],
  ['that says that it was dropped', encode({ kind: 'dropped' })],
  ['that says that nobody acknowledged it', encode({ kind: 'unacknowledged' })],
  ['of a boot with the same bytes', boot],
  ['that is cut off', encode().slice(0, 90)],
])('an entry %s is not its own', (_, entry) => {
  expect(find(entry)).toEqual({ logged: [], missing: [{ ...placed, leaf: LEAF }] })
})
