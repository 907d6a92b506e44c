import {
  encodeLogEntry,
  formatCheckpoint,
  formatSignatureLines,
  hashLogEntry,
  type LogEntry,
  parseNote,
  toVkey,
} from '@countersign/log'
import { hashTree, toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { log, origin, toCosigned, witnesses } from '../../packages/log/src/logs.fake.ts'
import { judgeLog } from './judgeLog.ts'

const policy = { witnesses: witnesses.map(({ key }) => toHex(key.publicKey)), quorum: 2 }
const statement = (kind: 'signature' | 'dropped' | 'unacknowledged', leaf: number): LogEntry => ({
  kind,
  keyId: '11'.repeat(16),
  leaf: leaf.toString(16).padStart(64, '0'),
  timeMs: 5,
})
const boot: LogEntry = { kind: 'boot', bootId: '22'.repeat(16), configHash: '33'.repeat(32), timeMs: 1 }

const toRoot = (entries: readonly LogEntry[]) => hashTree(entries.map(hashLogEntry))
const toNote = (entries: readonly LogEntry[], cosigners = witnesses.slice(0, 2), root = toRoot(entries)) =>
  toCosigned(formatCheckpoint({ origin, size: entries.length, root, extensions: [] }), cosigners)

/** A log with its newest note, whose first signature is stored and released by it, and what the witnesses say. */
function judge(
  entries: readonly LogEntry[],
  changes: {
    note?: string
    signings?: { slug: string; index: number; note: string }[]
    root?: string
    heard?: string
    newest?: string
  } = {},
) {
  const note = changes.note ?? toNote(entries)
  const lines = changes.heard ?? formatSignatureLines(parseNote(toNote(entries)).signatures.slice(1))
  const size = entries.length
  const root = toHex(toRoot(entries))
  return judgeLog(
    {
      origin,
      key: toVkey(log.key),
      entries: entries.map(encodeLogEntry),
      checkpoints: [{ size, root: changes.root ?? root }],
      notes: [{ size, note }],
      signings: changes.signings ?? [{ slug: 's', index: 1, note }],
    },
    {
      policy,
      cosigned: [{ origin, size, root, lines }],
      newest: [{ name: 'w1', vkey: toVkey((witnesses[0] as (typeof witnesses)[0]).key), note: changes.newest ?? note }],
    },
  )
}

const honest = [boot, statement('signature', 1), statement('signature', 2), statement('dropped', 2)]

test('an honest log has no faults, and each entry has its end', () => {
  const counts = { signatures: 2, committed: 1, dropped: 1, unacknowledged: 0, ofDeadBoots: 0 }
  expect(judge(honest)).toEqual({ counts, open: 0, faults: [] })
  expect(judge([boot, statement('signature', 1), statement('signature', 2)])).toMatchObject({ open: 1, faults: [] })
  const dead = [boot, statement('signature', 1), statement('signature', 2), { ...boot, bootId: '44'.repeat(16) }]
  expect(judge(dead)).toMatchObject({ counts: { ofDeadBoots: 1 }, open: 0, faults: [] })
})

test.each<[string, ReturnType<typeof judge>, RegExp]>([
  ['a note with one cosignature', judge(honest, { note: toNote(honest, witnesses.slice(0, 1)) }), /too few witnesses/],
  ['a cosignature that no honest witness gave', judge(honest, { heard: '' }), /no quorum of honest witnesses/],
  ['a note of another tree', judge(honest, { note: toNote(honest, witnesses, new Uint8Array(32)) }), /another tree/],
  ['a checkpoint of another tree', judge(honest, { root: '00'.repeat(32) }), /checkpoint of size 4 is of another tree/],
  [
    'a witness with another tree',
    judge(honest, { newest: toNote(honest, witnesses, new Uint8Array(32)) }),
    /w1 has another tree/,
  ],
  [
    'a signature released before its entry was cosigned',
    judge(honest, { signings: [{ slug: 's', index: 1, note: toNote([boot]) }] }),
    /s was released by a note that does not have it/,
  ],
  [
    'a stored signature without an entry',
    judge(honest, { signings: [{ slug: 's', index: 0, note: toNote(honest) }] }),
    /s has no entry/,
  ],
  [
    'a stored signature that was dropped',
    judge(honest, { signings: [{ slug: 's', index: 2, note: toNote(honest) }] }),
    /is stored and was dropped/,
  ],
  ['something dropped that was never signed', judge([boot, statement('dropped', 9)], { signings: [] }), /never signed/],
  ['a log that does not begin with a boot', judge([statement('signature', 1)], { signings: [] }), /first entry/],
])('%s is found', (_, { faults }, expected) => {
  expect(faults.join('\n')).toMatch(expected)
})
