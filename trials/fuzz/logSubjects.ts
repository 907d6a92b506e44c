import { developmentSeed } from '@countersign/attestation/simulator'
import {
  assertLogged,
  decodeBundle,
  decodeLogEntry,
  decodeTile,
  encodeBundle,
  encodeLogEntry,
  encodeTile,
  formatAddCheckpoint,
  hashLogEntry,
  openNote,
  parseAddCheckpoint,
  parseCheckpoint,
  parseNote,
  parseTilePath,
  parseTlogProof,
  parseVkey,
  toBundlePath,
  toTilePath,
} from '@countersign/log'
import { createSimulatedLog } from '@countersign/receipt/simulator'
import type { Subject } from './subject.ts'

/** Input from logs, witnesses and receipts: keys, notes, checkpoints, proofs, tiles and entries. */
export function createLogSubjects(): Subject[] {
  const entry = { kind: 'signature', keyId: 'ab'.repeat(16), leaf: 'cd'.repeat(32), timeMs: 1_781_524_800_123 } as const
  const table = { kind: 'table', rows: 2, root: 'ef'.repeat(32), timeMs: entry.timeMs } as const
  const { logKey, setting, prove } = createSimulatedLog(developmentSeed, { size: 300, index: 17 })
  const proof = prove(entry)
  const { checkpoint, proof: path } = parseTlogProof(proof)
  const { text } = parseNote(checkpoint)
  const key = parseVkey(logKey)
  const leaf = hashLogEntry(entry)
  const added = formatAddCheckpoint({ oldSize: 7, proof: path, checkpoint })
  return [
    toSubject('verifier key', [logKey], parseVkey),
    toSubject('note', [checkpoint], (note) => openNote(note, [key])),
    toSubject('checkpoint', [text], parseCheckpoint),
    toSubject('proof of a log', [proof], (given) => assertLogged(given, { leaf, log: key, policy: setting })),
    { name: 'request to a witness', parse: parseAddCheckpoint, seeds: [new TextEncoder().encode(added)] },
    toSubject(
      'path of a tile',
      [toTilePath({ level: 1, index: 1_234, width: 256 }), toBundlePath({ index: 5, width: 9 })],
      parseTilePath,
    ),
    { name: 'entry of a log', parse: decodeLogEntry, seeds: [encodeLogEntry(entry), encodeLogEntry(table)] },
    { name: 'tile', parse: (bytes) => decodeTile(bytes, 3), seeds: [encodeTile([leaf, leaf, leaf])] },
    {
      name: 'bundle of entries',
      parse: (bytes) => decodeBundle(bytes, 2),
      seeds: [encodeBundle([encodeLogEntry(entry), encodeLogEntry(entry)])],
    },
  ]
}

function toSubject(name: string, seeds: string[], parse: (text: string) => unknown): Subject {
  return {
    name,
    parse: (bytes) => void parse(new TextDecoder().decode(bytes)),
    seeds: seeds.map((seed) => new TextEncoder().encode(seed)),
  }
}
