/**
 * Leaves of statements that were erased, or given away and kept no more: none is made again. A statement is told by its leaf as long as that is
 * remembered, and what is signed later is dated after all that are not. So a statement that was dated far ahead by a clock that jumped does not
 * have all others dated after it.
 */
export type EndedLeaves = {
  add(leaf: string, signedAtMs: number): void
  /** Whether a statement ended, or may have. */
  has(leaf: string, signedAtMs: number): boolean
  /** The latest date of those that are not remembered. */
  untilMs(): number
}

/** Remembers `most` of them at most, those with the latest dates. */
export function createEndedLeaves(most: number): EndedLeaves {
  const dates = new Map<string, number>()
  let untilMs = 0

  function forgetHalf() {
    const sorted = Float64Array.from(dates.values()).sort()
    untilMs = sorted[Math.floor(most / 2)] ?? untilMs
    for (const [leaf, dateMs] of dates) if (dateMs <= untilMs) dates.delete(leaf)
  }

  return {
    add(leaf, signedAtMs) {
      if (signedAtMs <= untilMs) return
      dates.set(leaf, signedAtMs)
      if (dates.size > most) forgetHalf()
    },
    has: (leaf, signedAtMs) => signedAtMs <= untilMs || dates.has(leaf),
    untilMs: () => untilMs,
  }
}
