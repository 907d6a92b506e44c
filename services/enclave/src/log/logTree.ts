import { hash } from 'node:crypto'
import {
  appendLeaves,
  computeFrontierRoot,
  encodeLogEntry,
  type Frontier,
  formatCheckpoint,
  type LogEntry,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'

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
  let frontier = start
  let kept: string[] = []
  let keptFrom = start.size
  let takenUntil = start.size
  let cosigned = start.size
  const checkpoints = new Map<string, { size: number; note: Promise<string> }>()

  function read(wanted: number) {
    const from = Math.min(Math.max(wanted, keptFrom), frontier.size)
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
    size: () => frontier.size,
    append(entry) {
      const bytes = encodeLogEntry(entry)
      frontier = appendLeaves(frontier, [toLeaf(bytes)])
      kept.push(toHex(bytes))
      return frontier.size - 1
    },
    takeNew() {
      const taken = read(takenUntil)
      takenUntil = frontier.size
      return taken
    },
    head() {
      const { size } = frontier
      const text = formatCheckpoint({ origin, size, root: computeFrontierRoot(frontier), extensions: [] })
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
    countUncosigned: () => frontier.size - cosigned,
    isOpen: () => cosigned > start.size,
  }
}

const LEAF = Uint8Array.of(0)

/** The log's `hashLogEntry`, with the faster SHA-256. */
function toLeaf(entry: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hash('sha256', Buffer.concat([LEAF, entry]), 'buffer'))
}
