import {
  type Checkpoint,
  LOG_ENTRY_BYTES,
  type LogEntry,
  LogError,
  type NoteKey,
  parseCheckpoint,
  readLogEntryKind,
} from '@countersign/log'
import { type AppendedEntries, isHex, isNatural, ServiceError } from '@countersign/protocol'
import { hashLeaf } from '@countersign/service/hexTree'
import { readLogSignature, readNote } from './collection.ts'

/** Why an enclave's log cannot be gone on with. `details` is for our own log. */
export class LogFault extends ServiceError<
  /** What the enclave says is no log: another signature, size or form. */
  | 'log_malformed'
  /** The database has another history than the enclave: leave the origin. */
  | 'log_conflict'
  /** Entries are neither in the database nor kept by the enclave: leave the origin. */
  | 'log_gap'
  /** Too many witnesses refuse the log, or the enclave does not go on from what is written: leave the origin. */
  | 'log_refused'
> {
  override name = 'LogFault'
}

/** What an enclave appended, read. Whether it continues what is written is another question. */
export type ReadEntries = {
  from: number
  entries: readonly Uint8Array[]
  /** In hex. */
  leaves: readonly string[]
  kinds: readonly LogEntry['kind'][]
  checkpoint: Checkpoint
  note: string
}

/** Throws `log_malformed` for entries that are none, and for a checkpoint that is not of them or not signed by the log's key. */
export function readAppended({ origin, from, entries, checkpoint: text }: AppendedEntries, key: NoteKey): ReadEntries {
  const note = readNote(text)
  if (note === undefined || readLogSignature(note, key) === undefined) throw malformed('the checkpoint is not signed')
  const checkpoint = readCheckpoint(note.text)
  const isOwn = origin === key.name && checkpoint.origin === origin && checkpoint.extensions.length === 0
  if (!isOwn) throw malformed('the checkpoint is of another log')
  if (!isNatural(from) || checkpoint.size !== from + entries.length) throw malformed('the checkpoint has another size')
  if (!entries.every((entry) => isHex(entry, LOG_ENTRY_BYTES))) throw malformed('an entry has another length')
  const bytes = entries.map((entry) => Buffer.from(entry, 'hex'))
  return { from, entries: bytes, leaves: entries.map(hashLeaf), kinds: bytes.map(readKind), checkpoint, note: text }
}

function readCheckpoint(text: string): Checkpoint {
  try {
    return parseCheckpoint(text)
  } catch (error) {
    throw error instanceof LogError ? malformed('no checkpoint') : error
  }
}

function readKind(entry: Uint8Array): LogEntry['kind'] {
  try {
    return readLogEntryKind(entry)
  } catch (error) {
    throw error instanceof LogError ? malformed('an entry is none') : error
  }
}

function malformed(details: string) {
  return new LogFault('log_malformed', 'the enclave’s log cannot be read', { details })
}

/**
 * Two answers of one enclave as one, where the second begins in the first or right behind it. Undefined where it does not, or where they
 * differ in what both have: then each is judged by itself.
 *
 * Only the checkpoint of the longer one is kept. The other, with its signature, is never read: nothing is taken from it, since the tree
 * that the kept one signs has its entries too.
 */
export function mergeAppended(first: AppendedEntries, second: AppendedEntries): AppendedEntries | undefined {
  const [end, secondEnd] = [first.from + first.entries.length, second.from + second.entries.length]
  const offset = second.from - first.from
  if (first.origin !== second.origin || offset < 0 || second.from > end) return undefined
  const isSame = second.entries.every((entry, index) => entry === (first.entries[offset + index] ?? entry))
  if (!isSame || (secondEnd === end && second.checkpoint !== first.checkpoint)) return undefined
  if (secondEnd <= end) return first
  const entries = [...first.entries, ...second.entries.slice(end - second.from)]
  return { ...first, entries, checkpoint: second.checkpoint }
}
