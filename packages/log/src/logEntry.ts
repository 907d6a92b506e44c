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

export type LogEntry = BootEntry | StatementEntry

const KINDS = ['boot', 'signature', 'dropped', 'unacknowledged'] as const
export const LOG_ENTRY_BYTES = 57
const TIME_AT = 49

/** The bytes of an entry. */
export function encodeLogEntry(entry: LogEntry): Uint8Array<ArrayBuffer> {
  return fromHex(toLogEntryHex(entry))
}

/** The same in hex. */
export function toLogEntryHex(entry: LogEntry): string {
  const kind = KINDS.indexOf(entry.kind)
  const [short, long] = entry.kind === 'boot' ? [entry.bootId, entry.configHash] : [entry.keyId, entry.leaf]
  if (kind < 0 || !isHex(short, 16) || !isHex(long, 32) || !isNatural(entry.timeMs)) throw malformed('a member')
  return `0${kind}${short}${long}${entry.timeMs.toString(16).padStart(16, '0')}`
}

/** Parses an entry. Throws `log_entry_malformed` for an unknown kind or length. */
export function decodeLogEntry(bytes: Uint8Array): LogEntry {
  const kind = readLogEntryKind(bytes)
  const timeMs = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(TIME_AT))
  const [short, long] = [toHex(bytes.subarray(1, 17)), toHex(bytes.subarray(17, TIME_AT))]
  return kind === 'boot'
    ? { kind, bootId: short, configHash: long, timeMs }
    : { kind, keyId: short, leaf: long, timeMs }
}

/** Returns the kind of an entry, after checking all of it. */
export function readLogEntryKind(bytes: Uint8Array): LogEntry['kind'] {
  const kind = KINDS[bytes[0] ?? KINDS.length]
  if (bytes.length !== LOG_ENTRY_BYTES || kind === undefined) throw malformed('wrong kind or length')
  // Up to 2^53 - 1.
  if (bytes[TIME_AT] !== 0 || (bytes[TIME_AT + 1] as number) > 0x1f) throw malformed('time is out of range')
  return kind
}

/** The leaf of an entry in the tree of the log: SHA-256(0x00 ‖ entry). */
export function hashLogEntry(entry: LogEntry): Uint8Array<ArrayBuffer> {
  return hashTreeLeaf(encodeLogEntry(entry))
}

function malformed(details: string) {
  return new LogError('log_entry_malformed', 'malformed entry of a log', { details })
}
