import type { LogEntry } from '@countersign/log'
import { expect, test } from 'vitest'
import { type MatchParameters, matchEntries } from './matchEntries.ts'

const keyId = '0a'.repeat(16)
const origin = 'log.example/enclave-a'
const boot: LogEntry = { kind: 'boot', bootId: 'b0'.repeat(16), configHash: 'c0'.repeat(32), timeMs: 0 }
const emptyLog: MatchParameters['logs'][number] = {
  origin,
  note: '',
  size: 0,
  tiles: [],
  tail: [],
  tables: 0,
  keyIds: [keyId],
  entries: new Map(),
  cosignedAt: new Date(0),
  ahead: new Map(),
  isStale: false,
}
const match = (...logs: MatchParameters['logs']) =>
  matchEntries({
    logs,
    isWhole: true,
    keyIds: new Set([keyId]),
    receipts: new Map(),
    unread: 0,
    mined: new Set(),
    isDue: () => true,
  })

test('reports more entries without a receipt than a call can have arguments', () => {
  const count = 150_000
  const signatures = Array.from({ length: count }, (_, at): [number, LogEntry] => [
    at + 1,
    { kind: 'signature', keyId, leaf: at.toString(16).padStart(64, '0'), timeMs: 1 },
  ])
  const log = { ...emptyLog, size: count + 1, entries: new Map([[0, boot], ...signatures]) }
  const { findings } = match(log)
  expect(findings).toHaveLength(count)
  expect(findings.at(-1)).toMatchObject({ kind: 'hidden', index: count })
})

test.each([
  ['of which the first is dated ahead', { timeMs: 20 }, []],
  ['that are both dated ahead, and first seen in one run', { timeMs: 9_001 }, [[0, 10] as const]],
  ['that are both dated ahead, and of which the first was cosigned later', { timeMs: 9_001 }, [[0, 9] as const]],
  ['that are both dated ahead, with a clock that was set back between', { timeMs: 8_999 }, [[0, 11] as const]],
])('a start goes on in the last of two logs %s', (_, dated, ahead) => {
  const signature: LogEntry = { kind: 'signature', keyId, leaf: '0b'.repeat(32), timeMs: 1 }
  const entries = new Map([boot, signature].map((entry, index) => [index, { ...entry, timeMs: 9_000 }]))
  const left = { ...emptyLog, size: 2, isStale: true, entries, ahead: new Map([0, 1].map((index) => [index, 10])) }
  const begun = { entries: new Map([[0, { ...boot, ...dated }]]), ahead: new Map(ahead) }
  const next = { ...emptyLog, ...begun, origin: 'log.example/enclave-b', size: 1 }
  for (const { findings } of [match(left, next), match(next, left)]) {
    expect(findings).toMatchObject([{ kind: 'hidden', index: 1 }])
  }
})

test('a start that another one followed in the last of its two logs has ended', () => {
  const signature: LogEntry = { kind: 'signature', keyId, leaf: '0b'.repeat(32), timeMs: 1 }
  const left = { ...emptyLog, size: 2, entries: new Map([boot, signature].entries()) }
  const boots = [
    { ...boot, timeMs: 2 },
    { ...boot, bootId: 'b1'.repeat(16), timeMs: 3 },
  ]
  const next = { ...emptyLog, origin: 'log.example/enclave-b', size: 2, entries: new Map(boots.entries()) }
  for (const { findings } of [match(left, next), match(next, left)]) {
    expect(findings).toMatchObject([{ kind: 'unresolved', index: 1 }])
  }
})
