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

/** Why an enclave's log is unusable. `details` is only for our own log lines. */
export class LogFault extends ServiceError<
  /** The enclave's response is not a valid log: wrong signature, size or form. */
  | 'log_malformed'
  /** The database has another history than the enclave. The origin must be abandoned. */
  | 'log_conflict'
  /** Entries are missing from both the database and the enclave. The origin must be abandoned. */
  | 'log_gap'
  /** Too many witnesses refuse the log, or the enclave refuses to continue the stored one. The origin must be abandoned. */
  | 'log_refused'
> {
  override name = 'LogFault'
}

/** The parsed entries of an enclave. Not yet checked against the stored log. */
export type ReadEntries = {
  from: number
  entries: readonly Uint8Array[]
  /** In hex. */
  leaves: readonly string[]
  kinds: readonly LogEntry['kind'][]
  states: AppendedEntries['states']
  checkpoint: Checkpoint
  note: string
}

/** Throws `log_malformed` if an entry is invalid, or if the checkpoint doesn't cover the entries or lacks the log's signature. */
export function readAppended(
  { origin, from, entries, states, checkpoint: text }: AppendedEntries,
  key: NoteKey,
): ReadEntries {
  const note = readNote(text)
  if (note === undefined || readLogSignature(note, key) === undefined) throw malformed('the checkpoint is not signed')
  const checkpoint = readCheckpoint(note.text)
  const isOwn = origin === key.name && checkpoint.origin === origin && checkpoint.extensions.length === 0
  if (!isOwn) throw malformed('the checkpoint is of another log')
  if (!isNatural(from) || checkpoint.size !== from + entries.length)
    throw malformed('the checkpoint’s size does not match the entries')
  if (!entries.every((entry) => isHex(entry, LOG_ENTRY_BYTES))) throw malformed('wrong entry length')
  const bytes = entries.map((entry) => Buffer.from(entry, 'hex'))
  const kinds = bytes.map(readKind)
  return { from, entries: bytes, leaves: entries.map(hashLeaf), kinds, states, checkpoint, note: text }
}

function readCheckpoint(text: string): Checkpoint {
  try {
    return parseCheckpoint(text)
  } catch (error) {
    throw error instanceof LogError ? malformed('invalid checkpoint') : error
  }
}

function readKind(entry: Uint8Array): LogEntry['kind'] {
  try {
    return readLogEntryKind(entry)
  } catch (error) {
    throw error instanceof LogError ? malformed('invalid entry') : error
  }
}

function malformed(details: string) {
  return new LogFault('log_malformed', 'the enclave’s log cannot be read', { details })
}

/**
 * Merges two responses of one enclave if the second starts within the first or directly after it. Returns undefined if it doesn't, or if they
 * differ where they overlap: then each is checked separately.
 *
 * Keeps only the checkpoint of the longer response. The other is never read, because the kept tree contains its entries, too.
 */
export function mergeAppended(first: AppendedEntries, second: AppendedEntries): AppendedEntries | undefined {
  const [end, secondEnd] = [first.from + first.entries.length, second.from + second.entries.length]
  const offset = second.from - first.from
  if (first.origin !== second.origin || offset < 0 || second.from > end) return undefined
  const isSame = second.entries.every((entry, index) => entry === (first.entries[offset + index] ?? entry))
  if (!isSame || (secondEnd === end && second.checkpoint !== first.checkpoint)) return undefined
  if (secondEnd <= end) return first
  const entries = [...first.entries, ...second.entries.slice(end - second.from)]
  return { ...first, entries, states: [...first.states, ...second.states], checkpoint: second.checkpoint }
}
