import {
  type Checkpoint,
  LOG_ENTRY_BYTES,
  type LogEntry,
  LogError,
  type NoteKey,
  parseCheckpoint,
  readLogEntryKind,
} from '@countersign/log'
import { type AppendedEntries, isHex, isNatural } from '@countersign/protocol'
import { hashLeaf } from '@countersign/service/hexTree'
import { LogFault } from './logFault.ts'
import { readLogSignature, readNote } from './readCosignature.ts'

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
