import {
  concatBytes,
  equalBytes,
  fromHex,
  isPlainObject,
  parseStrictJson,
  ServiceError,
  toHex,
} from '@countersign/protocol/core'
import { digest } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TdReport } from './parseQuote.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * Payloads of a guest's run-time events by name, as lower-case hex: for dstack `compose-hash`, `key-provider` and others. The
 * application can record more events under any name, so a name may have several payloads.
 */
export type RuntimeEvents = ReadonlyMap<string, readonly string[]>

type LogEntry = { register: number; type: number; digest: Bytes; name: string; payload: Bytes }

const MAX_LOG_CHARACTERS = 1_048_576
const MAX_ENTRIES = 4096
const RUNTIME_REGISTER = 3
/** dstack `cc-eventlog`, `DSTACK_RUNTIME_EVENT_TYPE`. */
const RUNTIME_EVENT = 0x08000001

/**
 * Replays a dstack event log and compares it with the quote: RTMR = SHA-384(RTMR ‖ digest), from zeros (evidence.md, section 8).
 * RTMR3 must equal the quote's, and so must each other register that has an entry.
 */
export async function verifyEventLog(body: TdReport, log: string): Promise<RuntimeEvents> {
  const registers = new Map<number, Bytes>([[RUNTIME_REGISTER, new Uint8Array(48)]])
  const events = new Map<string, string[]>()
  for (const entry of parseEventLog(log)) {
    assertUnambiguous(entry)
    const extension = entry.type === RUNTIME_EVENT ? await hashRuntimeEvent(entry) : entry.digest
    if (extension.length !== 48) throw malformed('digest is not SHA-384')
    const register = registers.get(entry.register) ?? new Uint8Array(48)
    registers.set(entry.register, await digest('SHA-384', concatBytes(register, extension)))
    if (entry.register === RUNTIME_REGISTER) {
      events.set(entry.name, [...(events.get(entry.name) ?? []), toHex(entry.payload)])
    }
  }
  for (const [index, value] of registers) {
    const measured = body.rtmrs[index]
    if (measured !== undefined && equalBytes(measured, value)) continue
    throw new QuoteError('event_log_mismatch', 'the event log does not explain the quote', { details: `RTMR${index}` })
  }
  return events
}

/**
 * Anyone can write a log; the quote only covers its hashes. So RTMR3 must have one reading: an entry given by its digest could
 * hide a run-time event, and a colon in a name could move bytes between name and payload.
 */
function assertUnambiguous({ register, type, name }: LogEntry) {
  if (register === RUNTIME_REGISTER && type !== RUNTIME_EVENT) throw malformed('an entry of RTMR3 is no run-time event')
  if (type === RUNTIME_EVENT && name.includes(':')) throw malformed('a colon in the name of an event')
  // Every lone surrogate is U+FFFD in UTF-8, so two names would have one hash.
  if (/\p{Surrogate}/u.test(name)) throw malformed('a lone surrogate in the name of an event')
}

/** SHA-384(u32le type ‖ ":" ‖ name ‖ ":" ‖ payload), as in dstack's `cc-eventlog`. */
async function hashRuntimeEvent({ type, digest: stated, name, payload }: LogEntry): Promise<Bytes> {
  const separator = new Uint8Array([0x3a])
  const prefix = new Uint8Array(4)
  new DataView(prefix.buffer).setUint32(0, type, true)
  const parts = [prefix, separator, new TextEncoder().encode(name), separator, payload]
  const computed = await digest('SHA-384', concatBytes(...parts))
  // dstack omits the digest of run-time events.
  if (stated.length > 0 && !equalBytes(stated, computed)) throw malformed(`digest of ${name}`)
  return computed
}

function parseEventLog(log: string): LogEntry[] {
  if (log.length > MAX_LOG_CHARACTERS) throw malformed('too large')
  let entries: unknown
  try {
    const bytes = new TextEncoder().encode(log)
    entries = parseStrictJson(bytes, { maxLength: bytes.length })
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    if (cause.code === 'json_duplicate_member') throw malformed('a member occurs twice')
    throw malformed('not JSON')
  }
  if (!Array.isArray(entries) || entries.length > MAX_ENTRIES) throw malformed('not a list of entries')
  return entries.map(toEntry)
}

function toEntry(value: unknown): LogEntry {
  if (!isPlainObject(value)) throw malformed('malformed entry')
  const { imr, event_type: type, digest: hash, event: name, event_payload: payload } = value
  if (!isIntegerUpTo(imr, 3) || !isIntegerUpTo(type, 0xffff_ffff) || typeof name !== 'string') {
    throw malformed('malformed entry')
  }
  return { register: imr, type, digest: toBytes(hash), name, payload: toBytes(payload) }
}

function isIntegerUpTo(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max
}

function toBytes(value: unknown): Bytes {
  if (typeof value !== 'string') throw malformed('malformed entry')
  try {
    return fromHex(value)
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw malformed('malformed entry')
  }
}

function malformed(details: string) {
  return new QuoteError('event_log_malformed', 'malformed event log', { details })
}
