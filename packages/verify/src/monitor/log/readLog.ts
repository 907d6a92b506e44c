import {
  assertCosigned,
  type Checkpoint,
  type CosignedCheckpoint,
  findCosignatures,
  LogError,
  parseNote,
  parseVkey,
  readQuorumTimes,
  type WitnessPolicy,
} from '@countersign/log'
import { equalBytes } from '@countersign/protocol'
import type { LogSource } from './createLogSource.ts'
import { LogFault, lies, withholds } from './createLogSource.ts'
import { computeKnownRoot, countLeaves, type KnownLog } from './logMemory.ts'
import { computeRoots, type ReadTree, readTree } from './readTree.ts'

export type ReadLogParameters = {
  origin: string
  /** Verifier key. */
  key: string
  /** At least one; all must be satisfied. */
  policies: readonly WitnessPolicy[]
  /** Whether its witnesses are only assumed. */
  isGuessed: boolean
  /** The keys whose entries to keep. */
  keyIds: readonly string[]
  /** The state from an earlier run. */
  known: KnownLog | undefined
  /** The maximum number of new entries. */
  maxEntries: number
  /** The reader's clock. */
  now: Date
}

/** The current state of a log: cosigned, fully read, and a continuation of the earlier state. */
export type SeenLog = KnownLog & { size: number }

/** Reads a log. Throws a `LogFault` if something is wrong with it. */
export async function readLog(source: LogSource, parameters: ReadLogParameters): Promise<SeenLog> {
  const { origin, known, maxEntries } = parameters
  const note = await source.getCheckpoint(origin)
  const cosigned = openCheckpoint(note, parameters)
  const { size, root } = cosigned.checkpoint
  const knownSize = known === undefined ? 0 : countLeaves(known)
  if (known !== undefined && size < knownSize) {
    throw await refuseSmaller(source, { ...parameters, known, note, checkpoint: cosigned.checkpoint })
  }
  if (known !== undefined && size === knownSize && !equalBytes(computeKnownRoot(known), root)) throw forked(size)
  const keyIds = [...new Set([...(known?.keyIds ?? []), ...parameters.keyIds])]
  // For a new key, the whole log is read again.
  const isWhole = keyIds.length === known?.keyIds.length
  const unread = isWhole ? size - knownSize : size
  if (unread > maxEntries) {
    throw new LogFault('log-unavailable', `${unread} entries are unread, and one run reads at most ${maxEntries}`)
  }
  const tree =
    isWhole && size === knownSize
      ? known
      : await readContinuation(source, { origin, size, root, known, keyIds: new Set(keyIds), isWhole })
  const { tiles, tail, tables, entries } = tree
  const ahead = findAhead(entries, { known, seenMs: cosigned.seenMs })
  return { origin, note, keyIds, tiles, tail, tables, entries, ahead, size, cosignedAt: cosigned.at }
}

/**
 * Entries dated later than first seen, with the time they were first seen. A host could set the clock of its enclave ahead to delay the
 * alarm for missing receipts. Kept between runs, because a host can get the log cosigned again before each run.
 */
function findAhead(
  entries: KnownLog['entries'],
  { known, seenMs }: { known: KnownLog | undefined; seenMs: number },
): Map<number, number> {
  const ahead = new Map<number, number>()
  for (const [index, { timeMs }] of entries) {
    const firstMs = known?.entries.has(index) ? (known.ahead.get(index) ?? timeMs) : seenMs
    if (firstMs < timeMs) ahead.set(index, firstMs)
  }
  return ahead
}

/** The checkpoint, the time when the last policy was satisfied, and the current time. */
function openCheckpoint(
  note: string,
  { origin, key, policies, isGuessed, now }: ReadLogParameters,
): Pick<CosignedCheckpoint, 'checkpoint'> & { at: Date; seenMs: number } {
  try {
    const log = parseVkey(key)
    if (log.name !== origin) throw lies('its key belongs to another log')
    const opened = policies.map((policy) => ({ policy, cosigned: assertCosigned(note, { log, policy }) }))
    const times = opened.map(({ policy, cosigned }) => readQuorumTimes(cosigned.cosignatures, policy))
    const atMs = toMs(times.map(({ passedS }) => passedS))
    const shownMs = toMs(times.map(({ shownS }) => shownS))
    const [{ cosigned }] = opened as [(typeof opened)[number]]
    // The reader's clock, within the range of the witnesses' times. A witness with a slow clock can't make entries look dated ahead, and one
    // with a fast clock can't hide that.
    const seenMs = Math.max(atMs, Math.min(now.getTime(), shownMs))
    return { checkpoint: cosigned.checkpoint, at: new Date(atMs), seenMs }
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    const details = error.details === undefined ? '' : ` (${error.details})`
    if (isGuessed && error.code === 'quorum_missing') {
      throw new LogFault('log-not-checked', 'no receipt of this wallet names its witnesses, and others cosigned it')
    }
    throw lies(`its checkpoint is not valid: ${error.message}${details}`)
  }
}

/** The fault of a tree that is smaller than before: it is older, or it has another history. */
async function refuseSmaller(
  source: LogSource,
  parameters: Pick<ReadLogParameters, 'policies'> & { known: KnownLog; note: string; checkpoint: Checkpoint },
): Promise<LogFault> {
  const { known, note, checkpoint, policies } = parameters
  const { size } = checkpoint
  const knownSize = countLeaves(known)
  // Compares each witness's own times. Of two quorums, the one with the older tree can be later without any witness having gone back.
  const before = readTimes(known.note, policies)
  const isForgotten = [...readTimes(note, policies)].some(([witness, timeS]) => timeS > (before.get(witness) ?? timeS))
  if (isForgotten) {
    return lies(`it shows two histories: one of its witnesses cosigned ${knownSize} entries, and later only ${size}`)
  }
  const older = withholds(`it has ${size} entries now, but had ${knownSize} before`)
  try {
    const roots = await computeRoots(source, { origin: known.origin, tree: known, sizes: [size] })
    return equalBytes(roots.get(size) as Uint8Array, checkpoint.root) ? older : forked(size)
  } catch (error) {
    if (!(error instanceof LogFault)) throw error
    // The log no longer shows the entries for this comparison.
    return error.kind === 'log-lies' ? error : older
  }
}

/** When each witness cosigned a note, in seconds. */
function readTimes(note: string, policies: readonly WitnessPolicy[]): Map<string, number> {
  const witnesses = [...new Set(policies.flatMap((policy) => policy.witnesses))]
  try {
    return new Map(findCosignatures(parseNote(note), witnesses).map(({ witness, timestampS }) => [witness, timestampS]))
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    // A note from before these policies, with a line that they would reject.
    return new Map()
  }
}

function forked(size: number) {
  return lies(`it shows two histories: its tree of ${size} entries differs from the one seen before`)
}

async function readContinuation(
  source: LogSource,
  parameters: {
    origin: string
    size: number
    root: Uint8Array
    known: KnownLog | undefined
    keyIds: ReadonlySet<string>
    isWhole: boolean
  },
): Promise<ReadTree> {
  const { origin, size, root, known, keyIds, isWhole } = parameters
  const isItsRoot = (tree: ReadTree) => equalBytes(computeKnownRoot(tree), root)
  if (isWhole) {
    const tree = await readTree(source, { origin, size, keyIds, known })
    if (isItsRoot(tree)) return withTable(tree, size)
  }
  const tree = await readTree(source, { origin, size, keyIds, known: undefined })
  if (!isItsRoot(tree)) throw lies(`the root of its checkpoint of ${size} entries does not match its entries`)
  withTable(tree, size)
  if (known === undefined) return tree
  const knownSize = countLeaves(known)
  const roots = await computeRoots(source, { origin, tree, sizes: [knownSize] })
  if (!equalBytes(roots.get(knownSize) as Uint8Array, computeKnownRoot(known))) {
    throw lies(`it shows two histories: its tree of ${size} entries does not continue that of ${knownSize}`)
  }
  return tree
}

/** Every checkpoint ends with the root of the table of budgets. Otherwise a start could lose what was counted. */
function withTable(tree: ReadTree, size: number): ReadTree {
  if (tree.last === 'table') return tree
  throw lies(`its checkpoint of ${size} entries does not end with the root of the table of budgets`)
}

/** The latest time of a Date. A witness can sign a later one. */
const MAX_DATE_MS = 8.64e15

/** The earliest of these times. */
function toMs(timesS: readonly number[]): number {
  return Math.min(1000 * Math.min(...timesS), MAX_DATE_MS)
}
