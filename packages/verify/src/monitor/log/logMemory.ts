import {
  appendLeaves,
  computeFrontierRoot,
  decodeLogEntry,
  emptyFrontier,
  encodeLogEntry,
  type LogEntry,
  parseCheckpoint,
  parseNote,
  TILE_WIDTH,
} from '@countersign/log'
import {
  equalBytes,
  fromHex,
  isHex,
  isNatural,
  parseStrictJson,
  readMembers,
  ServiceError,
  toCanonicalJson,
  toHex,
} from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { VerifierError } from '../../errors.ts'

/** The known tree of a log: enough to continue from it, and to compute the root of any smaller tree. */
export type KnownTree = {
  /** Roots of the full tiles of level 0. */
  tiles: readonly Uint8Array[]
  /** Leaf hashes after the full tiles. */
  tail: readonly Uint8Array[]
  /** How many entries are roots of the table of budgets. */
  tables: number
}

/** The state of a log from an earlier run. Only a continuation replaces it. */
export type KnownLog = KnownTree & {
  origin: string
  /** The checkpoint, with its cosignatures. */
  note: string
  /** The newest time at which a whole quorum cosigned it. */
  cosignedAt: Date
  /** The keys whose entries are kept. */
  keyIds: readonly string[]
  /** Boot entries and the entries of these keys, by index. */
  entries: ReadonlyMap<number, LogEntry>
  /** Entries dated later than first seen, with the time they were first seen, in milliseconds, by index. */
  ahead: ReadonlyMap<number, number>
}

/** The state of logs from earlier runs, for all wallets. */
export type LogsMemory = {
  /** By origin. */
  known: Map<string, KnownLog>
  /** Full bundles, which never change, by origin and path. Shared by the wallets of one run. */
  bundles: Map<string, Promise<Uint8Array<ArrayBuffer>>>
  /** By origin: a size that a quorum has cosigned but the service doesn't show, and how long the monitor has waited for it. */
  unshown: Map<string, { size: number; waitedMs: number }>
}

export function createLogsMemory(): LogsMemory {
  return { known: new Map(), bundles: new Map(), unshown: new Map() }
}

const VERSION = 'countersign-monitor/1'
/**
 * Enough for some 500,000 kept entries of 130 bytes each, plus 67 bytes per 256 entries of the log. Larger states take gigabytes of memory.
 */
export const MAX_STATE_BYTES = 67_108_864

export function countLeaves({ tiles, tail }: Pick<KnownTree, 'tiles' | 'tail'>): number {
  return tiles.length * TILE_WIDTH + tail.length
}

export function computeKnownRoot({ tiles, tail }: Pick<KnownTree, 'tiles' | 'tail'>): Uint8Array {
  const hashes = [...appendLeaves(emptyFrontier, tiles).hashes, ...appendLeaves(emptyFrontier, tail).hashes]
  return computeFrontierRoot({ size: countLeaves({ tiles, tail }), hashes })
}

/** The kept entries in order. The time of each is its date, or when it was first seen, if that was earlier. */
export function listEntries({ entries, ahead }: Pick<KnownLog, 'entries' | 'ahead'>) {
  return [...entries]
    .toSorted(([a], [b]) => a - b)
    .map(([index, entry]) => ({ index, entry, timeMs: ahead.get(index) ?? entry.timeMs }))
}

/** Formats the state for a file. The hash detects accidental damage. Anyone who can write the file can also write the hash. */
export function formatMonitorState(memory: LogsMemory): string {
  const logs = [...memory.known.values()].map(
    ({ origin, note, cosignedAt, keyIds, tiles, tail, tables, entries, ahead }) => ({
      origin,
      note,
      cosignedAt: cosignedAt.toISOString(),
      keyIds: [...keyIds],
      tiles: tiles.map(toHex),
      tail: tail.map(toHex),
      // Missing in states of logs without such entries.
      ...(tables === 0 ? {} : { tables }),
      entries: [...entries].map(([index, entry]) => [index, toHex(encodeLogEntry(entry))]),
      // Rare, and missing in older states.
      ...(ahead.size === 0 ? {} : { ahead: [...ahead] }),
    }),
  )
  return `${JSON.stringify({ version: VERSION, hash: hashLogs(logs), logs })}\n`
}

/** Parses a state. Throws `state_malformed` for anything invalid. */
export function parseMonitorState(bytes: Uint8Array): LogsMemory {
  const memory = createLogsMemory()
  try {
    const value = parseStrictJson(bytes, { maxLength: MAX_STATE_BYTES })
    const { version, hash, logs } = readMembers(value, { required: ['version', 'hash', 'logs'] }, malformed)
    if (version !== VERSION) throw malformed(`its version is not ${VERSION}`)
    if (!Array.isArray(logs) || hash !== hashLogs(logs)) throw malformed('its hash does not match')
    for (const item of logs) {
      const log = readLog(item)
      memory.known.set(log.origin, log)
    }
    if (memory.known.size !== logs.length) throw malformed('it has a log twice')
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'state_malformed') throw error
    throw malformed(error.details ?? error.message)
  }
  return memory
}

function readLog(value: unknown): KnownLog {
  const required = ['origin', 'note', 'cosignedAt', 'keyIds', 'tiles', 'tail', 'entries']
  const members = readMembers(value, { required, optional: ['ahead', 'tables'] }, malformed)
  const { origin, note, cosignedAt, keyIds, tiles, tail, tables = 0, entries, ahead = [] } = members
  const isText = typeof origin === 'string' && typeof note === 'string' && typeof cosignedAt === 'string'
  const isTree = isHexList(tiles, 32) && isHexList(tail, 32) && isNatural(tables)
  if (!isText || !isHexList(keyIds, 16) || !isTree || !Array.isArray(entries) || !Array.isArray(ahead)) {
    throw malformed('a member')
  }
  const time = new Date(cosignedAt)
  if (Number.isNaN(time.getTime())) throw malformed('a time')
  const tree = { tiles: tiles.map(fromHex), tail: tail.map(fromHex), tables }
  const checkpoint = parseCheckpoint(parseNote(note).text)
  const size = countLeaves(tree)
  const isItsTree = checkpoint.size === size && equalBytes(checkpoint.root, computeKnownRoot(tree))
  if (checkpoint.origin !== origin || !isItsTree) throw malformed('a tree does not match its checkpoint')
  const kept = entries.map((item: unknown): [number, LogEntry] => {
    const [index, hex] = Array.isArray(item) ? item : []
    if (!isNatural(index) || index >= size || typeof hex !== 'string') throw malformed('an entry')
    return [index, decodeLogEntry(fromHex(hex))]
  })
  const seen = ahead.map((item: unknown): [number, number] => {
    const [index, timeMs] = Array.isArray(item) ? item : []
    if (!isNatural(index) || !isNatural(timeMs)) throw malformed('an entry')
    return [index, timeMs]
  })
  return { origin, note, cosignedAt: time, keyIds, ...tree, entries: new Map(kept), ahead: new Map(seen) }
}

function isHexList(value: unknown, bytes: number): value is string[] {
  return Array.isArray(value) && value.every((item) => isHex(item, bytes))
}

function hashLogs(logs: unknown): string {
  return toHex(sha256(toCanonicalJson(logs)))
}

function malformed(details: string) {
  return new VerifierError('state_malformed', 'the state of the monitor is damaged', { details })
}
