import { type Frontier, formatCheckpoint, type LogEntry, toLogEntryHex } from '@countersign/log/core'
import { fromHex, toHex } from '@countersign/protocol/core'
import { createTreeEdge, hashLeaf } from '@countersign/service/hexTree'

/** The tree of one log as this boot goes on with it. The entries before are known by their frontier alone. */
export type LogTree = {
  readonly origin: string
  /** Answers the index of the entry. */
  append(entry: LogEntry): number
  size(): number
  /** The kept entries from this index on, or from the first that is kept. */
  read(from: number): { from: number; entries: string[] }
  /** What was appended since the last time that this was asked. Until then no entry is forgotten. */
  takeNew(): { from: number; entries: string[] }
  /** The checkpoint of all that was appended, signed once. */
  head(): Promise<string>
  /** The size of a checkpoint, by its text, if this boot signed it. */
  findSize(text: string): number | undefined
  /** A quorum is known to have cosigned so many entries: those before are somewhere else, and may be forgotten here. */
  setCosigned(size: number): void
  /** Entries that no quorum is known to have cosigned. */
  countUncosigned(): number
  /** Whether the first entry of this boot is cosigned. */
  isOpen(): boolean
}

/** How many checkpoints are remembered below the cosigned size: others may have had them cosigned meanwhile. Some minutes of them. */
const MAX_CHECKPOINTS = 4_096

export function createLogTree({
  origin,
  start,
  sign,
}: {
  origin: string
  start: Frontier
  /** The text of a checkpoint becomes a note. */
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
      // It is tried again by the next who asks.
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
