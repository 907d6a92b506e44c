import { type Frontier, formatCheckpoint, type LogEntry, toLogEntryHex } from '@countersign/log/core'
import { fromHex, toHex } from '@countersign/protocol/core'
import type { HexTable } from '@countersign/service/hexTable'
import { createTreeEdge, hashLeaf } from '@countersign/service/hexTree'
import type { StateChange } from '../budget/budgetTable.ts'

/** The tree of one log, as this boot continues it. Earlier entries are known only by their frontier. */
export type LogTree = {
  readonly origin: string
  /** Returns the index of the entry. */
  append(entry: LogEntry): number
  size(): number
  /** Takes a change of the table of budgets. The next checkpoint covers it. */
  change(change: StateChange): void
  /** The stored entries from this index on, or from the first that is stored. */
  read(from: number): LogPart
  /** The entries appended since the last call. No entry is deleted before it was returned here. */
  takeNew(): LogPart
  /** The checkpoint of all appended entries, signed once. Its last entry is the root of the table, which this appends if needed. */
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

/** Entries, and the changes of the table that their roots cover: the changes before a root belong to it. */
export type LogPart = { from: number; entries: string[]; states: StateChange[] }

/**
 * How many checkpoints below the cosigned size to remember, about some minutes' worth: another coordinator may have had them cosigned
 * meanwhile.
 */
const MAX_CHECKPOINTS = 4_096

export function createLogTree({
  origin,
  start,
  table,
  sign,
  now,
}: {
  origin: string
  start: Frontier
  /** As the last entry of `start` has it. */
  table: HexTable
  /** Signs the text of a checkpoint, which makes it a note. */
  sign(text: string): Promise<string>
  now(): number
}): LogTree {
  const edge = createTreeEdge({ size: start.size, hashes: start.hashes.map(toHex) })
  let kept: string[] = []
  let keptFrom = start.size
  let takenUntil = start.size
  let cosigned = start.size
  /** The changes that each stored root covers, by the index of its entry. */
  const covered = new Map<number, StateChange[]>()
  let uncovered: StateChange[] = []
  /** The root of the last entry, if it is one. */
  let lastRoot: string | undefined
  const checkpoints = new Map<string, { size: number; note: Promise<string> }>()

  function read(wanted: number) {
    const from = Math.min(Math.max(wanted, keptFrom), edge.size)
    const states = [...covered].flatMap(([index, changes]) => (index >= from ? changes : []))
    return { from, entries: kept.slice(from - keptFrom), states }
  }

  function forget() {
    const until = Math.min(cosigned, takenUntil)
    kept = kept.slice(until - keptFrom)
    keptFrom = until
    for (const index of covered.keys()) if (index < until) covered.delete(index)
    for (const [text, { size }] of checkpoints) {
      if (size >= cosigned || checkpoints.size <= MAX_CHECKPOINTS) break
      checkpoints.delete(text)
    }
  }

  function append(entry: LogEntry): number {
    const hex = toLogEntryHex(entry)
    edge.append(hashLeaf(hex))
    kept.push(hex)
    lastRoot = entry.kind === 'table' ? entry.root : undefined
    return edge.size - 1
  }

  function closeWithTable() {
    const root = table.computeRoot()
    if (root === lastRoot) return
    const index = append({ kind: 'table', rows: table.size, root, timeMs: now() })
    if (uncovered.length > 0) covered.set(index, uncovered)
    uncovered = []
  }

  return {
    origin,
    read,
    append,
    size: () => edge.size,
    change(change) {
      table.set(change.row, change.state)
      uncovered.push(change)
    },
    takeNew() {
      const taken = read(takenUntil)
      takenUntil = edge.size
      return taken
    },
    head() {
      closeWithTable()
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
