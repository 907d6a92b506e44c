import { MAX_NOTE_BYTES, type NoteKey, openNote, parseCheckpoint, parseNote } from '@countersign/log'
import { equalBytes, hashTree, hashTreeLeaf } from '@countersign/protocol'
import { VerifierError } from '../errors.ts'
import { MAX_RECORD_BYTES, parseReleaseRecord, type ReleaseRecord } from './releaseRecord.ts'

/** The files of a log of releases, unverified. */
export type ReleaseLogFiles = {
  /** The checkpoint, with the log's signature and those of witnesses. */
  note: string
  /** The verifier key that came with the log. */
  vkey: string | undefined
  records: readonly Uint8Array[]
}

/** Reads a file of the log by its name. Undefined if there is none. */
export type ReadReleaseFile = (name: string, limit: { maxBytes: number }) => Promise<Uint8Array | undefined>

export const CHECKPOINT_FILE = 'checkpoint'
export const KEY_FILE = 'key'
const MAX_VKEY_BYTES = 4_096
/** Bounds what a server can make a reader fetch. */
const MAX_RELEASES = 256

export const toRecordName = (index: number): string => `${String(index).padStart(4, '0')}.json`

/** Reads the files of a log. Undefined if there is no checkpoint, as before the first release. */
export async function readReleaseLog(read: ReadReleaseFile): Promise<ReleaseLogFiles | undefined> {
  const checkpoint = await read(CHECKPOINT_FILE, { maxBytes: MAX_NOTE_BYTES })
  if (checkpoint === undefined) return undefined
  const note = new TextDecoder().decode(checkpoint)
  const { size } = parseCheckpoint(parseNote(note).text)
  if (size > MAX_RELEASES) throw invalid(`more than ${MAX_RELEASES} records`)
  const key = await read(KEY_FILE, { maxBytes: MAX_VKEY_BYTES })
  // All at once, so that a slow server can't add up its delays.
  const records = await Promise.all(
    Array.from({ length: size }, async (_, index) => {
      const record = await read(toRecordName(index), { maxBytes: MAX_RECORD_BYTES })
      if (record === undefined) throw invalid(`${toRecordName(index)} is missing`)
      return record
    }),
  )
  return { note, vkey: key && new TextDecoder().decode(key).trim(), records }
}

/** Returns the records if the key signed a checkpoint of exactly these. Doesn't check witnesses. */
export function openReleaseLog({ note, records }: ReleaseLogFiles, key: NoteKey): ReleaseRecord[] {
  if (key.type !== 'ed25519') throw invalid('the key is not the key of a log')
  const { origin, size, root, extensions } = parseCheckpoint(openNote(note, [key]).text)
  if (origin !== key.name || extensions.length > 0) throw invalid('the checkpoint belongs to another log')
  const isComplete = size === records.length && size > 0
  if (!isComplete || !equalBytes(hashTree(records.map(hashTreeLeaf)), root)) {
    throw invalid('the checkpoint is of other records')
  }
  return records.map(parseReleaseRecord)
}

function invalid(details: string) {
  return new VerifierError('release_log_invalid', 'invalid log of releases', { details })
}
