import { type Frontier, formatCheckpoint, type LogEntry, toLogEntryHex } from '@countersign/log/core'
import { fromHex, toHex } from '@countersign/protocol/core'
import { createTreeEdge, hashLeaf } from '@countersign/service/hexTree'

/** The tree of one log, as this boot continues it. Earlier entries are known only by their frontier. */
export type LogTree = {
  readonly origin: string
  /** Returns the index of the entry. */
  append(entry: LogEntry): number
  size(): number
  /** The stored entries from this index on, or from the first that is stored. */
  read(from: number): { from: number; entries: string[] }
  /** The entries appended since the last call. No entry is deleted before it was returned here. */
  takeNew(): { from: number; entries: string[] }
  /** The checkpoint of all appended entries, signed once. */
  head(): Promise<string>
  /** The size of a checkpoint, by its text, if this boot signed it. */
  findSize(text: string): number | undefined
  /** Records that a quorum has cosigned this many entries. They are stored elsewhere, so they may be deleted here. */
  setCosigned(size: number): void
  /** The number of entries without a known quorum. */
  countUncosigned(): number
  /** Whether the first entry of this boot is cosigned. */
  isOpen(): boolean
}

/**
 * How many checkpoints below the cosigned size to remember, about some minutes' worth: another coordinator may have had them cosigned
 * meanwhile.
 */
const MAX_CHECKPOINTS = 4_096

export function createLogTree({
  origin,
  start,
  sign,
}: {
  origin: string
  start: Frontier
  /** Signs the text of a checkpoint, which makes it a note. */
  sign(text: string): Promise<string>
}): LogTree {
  const edge = createTreeEdge({ size: start.size, hashes: start.hashes.map(toHex) })
  let kept: string[] = []
  let keptFrom = start.size
  let takenUntil = start.size
  let cosigned = start.size
  const checkpoints = new Map<string, { size: number; note: Promise<string> }>()

  function read(wanted: number) {
    const from = Math.min(Math.max(wanted, keptFrom), edge.size)
    return { from, entries: kept.slice(from - keptFrom) }
  }

  function forget() {
    const until = Math.min(cosigned, takenUntil)
    kept = kept.slice(until - keptFrom)
    keptFrom = until
    for (const [text, { size }] of checkpoints) {
      if (size >= cosigned || checkpoints.size <= MAX_CHECKPOINTS) break
      checkpoints.delete(text)
    }
  }

  return {
    origin,
    read,
    size: () => edge.size,
    append(entry) {
      const hex = toLogEntryHex(entry)
      edge.append(hashLeaf(hex))
      kept.push(hex)
      return edge.size - 1
    },
    takeNew() {
      const taken = read(takenUntil)
      takenUntil = edge.size
      return taken
    },
    head() {
      const { size } = edge
      const text = formatCheckpoint({ origin, size, root: fromHex(edge.computeRoot()), extensions: [] })
      const known = checkpoints.get(text)
      if (known !== undefined) return known.note
      const note = sign(text)
      checkpoints.set(text, { size, note })
      // The next caller retries.
      note.catch(() => checkpoints.delete(text))
      return note
    },
    findSize: (text) => checkpoints.get(text)?.size,
    setCosigned(size) {
      if (size <= cosigned) return
      cosigned = size
      forget()
    },
    countUncosigned: () => edge.size - cosigned,
    isOpen: () => cosigned > start.size,
  }
}
