import { fromHex, hashTreeLeaf, isHex, isNatural, toHex } from '@countersign/protocol/core'
import { LogError } from './errors.ts'

/*
 * The entries of Countersign's log, `spec/log-v1.md`: a byte for the kind, 16 and 32 bytes, and a time. All have the same length, so they are
 * unambiguous.
 */

/**
 * About a statement: it was signed and quoted, or erased in the enclave without being released, or released without an acknowledgment of its
 * receipt.
 */
export type StatementEntry = {
  kind: 'signature' | 'dropped' | 'unacknowledged'
  /** 16 bytes of hex. */
  keyId: string
  /** 32 bytes of hex: the leaf of the statement in its batch. */
  leaf: string
  timeMs: number
}

/** The first entry of each start of an enclave. */
export type BootEntry = {
  kind: 'boot'
  /** 16 bytes of hex. */
  bootId: string
  /** 32 bytes of hex. */
  configHash: string
  timeMs: number
}

/** The root of the table of budgets after all earlier entries. The last entry of every checkpoint is one. */
export type TableEntry = {
  kind: 'table'
  rows: number
  /** 32 bytes of hex. Zeros for the empty table. */
  root: string
  timeMs: number
}

export type LogEntry = BootEntry | StatementEntry | TableEntry

const KINDS = ['boot', 'signature', 'dropped', 'unacknowledged', 'table'] as const
export const LOG_ENTRY_BYTES = 57
const TIME_AT = 49

/** The bytes of an entry. */
export function encodeLogEntry(entry: LogEntry): Uint8Array<ArrayBuffer> {
  return fromHex(toLogEntryHex(entry))
}

/** The same in hex. */
export function toLogEntryHex(entry: LogEntry): string {
  const kind = KINDS.indexOf(entry.kind)
  const [short, long] = toFields(entry)
  if (kind < 0 || !isHex(short, 16) || !isHex(long, 32) || !isNatural(entry.timeMs)) throw malformed('a member')
  return `0${kind}${short}${long}${entry.timeMs.toString(16).padStart(16, '0')}`
}

function toFields(entry: LogEntry): [short: string, long: string] {
  if (entry.kind === 'boot') return [entry.bootId, entry.configHash]
  if (entry.kind !== 'table') return [entry.keyId, entry.leaf]
  // Eight bytes, and eight zero bytes.
  return [isNatural(entry.rows) ? `${entry.rows.toString(16).padStart(16, '0')}${'0'.repeat(16)}` : '', entry.root]
}

/** Parses an entry. Throws `log_entry_malformed` for an unknown kind or length. */
export function decodeLogEntry(bytes: Uint8Array): LogEntry {
  const kind = readLogEntryKind(bytes)
  const timeMs = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(TIME_AT))
  const [short, long] = [toHex(bytes.subarray(1, 17)), toHex(bytes.subarray(17, TIME_AT))]
  if (kind === 'boot') return { kind, bootId: short, configHash: long, timeMs }
  if (kind !== 'table') return { kind, keyId: short, leaf: long, timeMs }
  return { kind, rows: Number.parseInt(short.slice(0, 16), 16), root: long, timeMs }
}

/** Returns the kind of an entry, after checking all of it. */
export function readLogEntryKind(bytes: Uint8Array): LogEntry['kind'] {
  const kind = KINDS[bytes[0] ?? KINDS.length]
  if (bytes.length !== LOG_ENTRY_BYTES || kind === undefined) throw malformed('wrong kind or length')
  // Up to 2^53 - 1.
  if (bytes[TIME_AT] !== 0 || (bytes[TIME_AT + 1] as number) > 0x1f) throw malformed('time is out of range')
  const isTable =
    kind !== 'table' ||
    (/^00[01]/.test(toHex(bytes.subarray(1, 3))) && bytes.subarray(9, 17).every((byte) => byte === 0))
  if (!isTable) throw malformed('the number of rows is out of range')
  return kind
}

/** The leaf of an entry in the tree of the log: SHA-256(0x00 ‖ entry). */
export function hashLogEntry(entry: LogEntry): Uint8Array<ArrayBuffer> {
  return hashTreeLeaf(encodeLogEntry(entry))
}

function malformed(details: string) {
  return new LogError('log_entry_malformed', 'malformed entry of a log', { details })
}
