import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createConsistencyProof,
  createLeafReader,
  formatCheckpoint,
  formatNote,
  parseCheckpoint,
  parseNote,
  parseVkey,
  signNote,
  toVkey,
} from '@countersign/log'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import {
  CHECKPOINT_FILE,
  formatReleaseRecord,
  KEY_FILE,
  openReleaseLog,
  type ReleaseLogFiles,
  type ReleaseRecord,
  readReleaseLog,
  toRecordName,
} from '@countersign/verify'
import type { WitnessClient } from '../../services/coordinator/src/log/witnessClient.ts'
import type { ReleaseKey } from './releaseKey.ts'

/** Reads the log of releases in a folder. Undefined before the first record. */
function readFolder(folder: string): Promise<ReleaseLogFiles | undefined> {
  return readReleaseLog(async (name) => {
    const path = join(folder, name)
    return existsSync(path) ? readFileSync(path) : undefined
  })
}

/** Appends a record and signs the new checkpoint. Refuses to continue a log of another key or with changed records. */
export async function appendRecord(
  folder: string,
  record: Omit<ReleaseRecord, 'version'>,
  { key, sign }: ReleaseKey,
): Promise<void> {
  const files = await readFolder(folder)
  const earlier = files === undefined ? [] : openReleaseLog(files, key)
  if (earlier.some(({ release }) => release === record.release)) throw new Error(`${record.release} has a record`)
  const bytes = formatReleaseRecord(record)
  const leaves = [...(files?.records ?? []), bytes].map(hashTreeLeaf)
  const checkpoint = { origin: key.name, size: leaves.length, root: hashTree(leaves), extensions: [] }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, toRecordName(earlier.length)), bytes)
  writeFileSync(join(folder, KEY_FILE), `${toVkey(key)}\n`)
  // Last, because it makes the record part of the log.
  writeCheckpoint(folder, signNote(formatCheckpoint(checkpoint), [{ key, sign }]))
}

/** Asks witnesses to cosign the checkpoint, and stores their lines below it. Returns the refusals. */
export async function addCosignatures(folder: string, witnesses: readonly WitnessClient[]): Promise<string[]> {
  const files = await readFolder(folder)
  if (files?.vkey === undefined) throw new Error(`${folder} has no log`)
  const key = parseVkey(files.vkey)
  openReleaseLog(files, key)
  const { text, signatures } = parseNote(files.note)
  const { origin, size } = parseCheckpoint(text)
  const own = signatures.filter(({ name, keyId }) => name === key.name && keyId === key.id)
  const readNode = createLeafReader(files.records.map(hashTreeLeaf))
  const refusals: string[] = []
  const lines = new Map(signatures.map((line) => [`${line.name}+${line.keyId}`, line]))
  for (const witness of witnesses) {
    const answer = await witness.addCheckpoint({
      origin,
      size,
      text,
      note: formatNote({ text, signatures: own }),
      likelySize: size - 1,
      prove: async (oldSize) => createConsistencyProof(readNode, { oldSize, size }),
    })
    if (answer.outcome === 'cosigned') lines.set(`${witness.key.name}+${witness.key.id}`, answer.cosignature.signature)
    else refusals.push(`${witness.key.name}: ${answer.outcome === 'ahead' ? 'it has a longer log' : answer.reason}`)
  }
  writeCheckpoint(folder, formatNote({ text, signatures: [...lines.values()] }))
  return refusals
}

function writeCheckpoint(folder: string, note: string) {
  const path = join(folder, CHECKPOINT_FILE)
  writeFileSync(`${path}.new`, note)
  renameSync(`${path}.new`, path)
}
