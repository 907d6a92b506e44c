import { assertCosigned, type CosignedCheckpoint, LogError, parseVkey, type WitnessPolicy } from '@countersign/log'
import { equalBytes } from '@countersign/protocol'
import type { LogSource } from './createLogSource.ts'
import { LogFault, lies, withholds } from './logFault.ts'
import { computeKnownRoot, countLeaves, type KnownLog } from './logMemory.ts'
import { computeRoots, type ReadTree, readTree } from './readTree.ts'

export type ReadLogParameters = {
  origin: string
  /** Verifier key. */
  key: string
  /** At least one; each must be met. */
  policies: readonly WitnessPolicy[]
  /** Whose entries are wanted. */
  keyIds: readonly string[]
  /** What an earlier look saw. */
  known: KnownLog | undefined
  maxEntries: number
}

/** A log as it is now: cosigned, read to its end, and a continuation of what was seen before. */
export type SeenLog = KnownLog & {
  size: number
  /** The newest time at which a whole quorum cosigned this checkpoint. */
  cosignedAt: Date
}

/** Reads a log. Throws a `LogFault` that says what is wrong with it. */
export async function readLog(source: LogSource, parameters: ReadLogParameters): Promise<SeenLog> {
  const { origin, known, maxEntries } = parameters
  const note = await source.getCheckpoint(origin)
  const cosigned = openCheckpoint(note, parameters)
  const { size, root } = cosigned.checkpoint
  if (size > maxEntries) throw new LogFault('log-unavailable', `${size} entries are more than one look reads`)
  const knownSize = known === undefined ? 0 : countLeaves(known)
  if (known !== undefined && size <= knownSize) await assertOlder(source, { known, size, root })
  if (size < knownSize) throw withholds(`it has ${size} entries now, and had ${knownSize} before`)
  const keyIds = [...new Set([...(known?.keyIds ?? []), ...parameters.keyIds])]
  const isWhole = keyIds.length === known?.keyIds.length
  // For a key that was not looked for before, the log is read from its beginning.
  const tree =
    isWhole && size === knownSize
      ? known
      : await readContinuation(source, { origin, size, root, known, keyIds: new Set(keyIds), isWhole })
  const { tiles, tail, entries } = tree
  return { origin, note, keyIds, tiles, tail, entries, size, cosignedAt: cosigned.at }
}

/** The checkpoint, and the time by which the last of the policies was met. */
function openCheckpoint(
  note: string,
  { origin, key, policies }: ReadLogParameters,
): Pick<CosignedCheckpoint, 'checkpoint'> & { at: Date } {
  try {
    const log = parseVkey(key)
    if (log.name !== origin) throw lies('its key is of another log')
    const opened = policies.map((policy) => ({ policy, cosigned: assertCosigned(note, { log, policy }) }))
    const times = opened.map(({ policy, cosigned }) => toQuorumTime(cosigned, policy))
    const [{ cosigned }] = opened as [(typeof opened)[number]]
    return { checkpoint: cosigned.checkpoint, at: new Date(Math.min(1000 * Math.min(...times), MAX_DATE_MS)) }
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    const details = error.details === undefined ? '' : ` (${error.details})`
    throw lies(`its checkpoint does not hold: ${error.message}${details}`)
  }
}

/** A checkpoint that is not larger than the one that was seen must be of the same tree. */
async function assertOlder(
  source: LogSource,
  { known, size, root }: { known: KnownLog; size: number; root: Uint8Array },
): Promise<void> {
  const roots = await computeRoots(source, { origin: known.origin, tree: known, sizes: [size] })
  if (!equalBytes(roots.get(size) as Uint8Array, root)) {
    throw lies(`it shows two histories: its tree of ${size} entries is another than was seen before`)
  }
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
    if (isItsRoot(tree)) return tree
  }
  const tree = await readTree(source, { origin, size, keyIds, known: undefined })
  if (!isItsRoot(tree)) throw lies(`the root of its checkpoint of ${size} entries is not that of its entries`)
  if (known === undefined) return tree
  const knownSize = countLeaves(known)
  const roots = await computeRoots(source, { origin, tree, sizes: [knownSize] })
  if (!equalBytes(roots.get(knownSize) as Uint8Array, computeKnownRoot(known))) {
    throw lies(`it shows two histories: its tree of ${size} entries does not continue that of ${knownSize}`)
  }
  return tree
}

/** A witness can sign any time, such as one that no date has. */
const MAX_DATE_MS = 8.64e15

/** In seconds: at that time or later a whole quorum knew of nothing newer. */
function toQuorumTime({ cosignatures }: CosignedCheckpoint, { quorum }: WitnessPolicy): number {
  const times = cosignatures.map(({ timestampS }) => timestampS).toSorted((a, b) => b - a)
  return times[quorum - 1] ?? 0
}
