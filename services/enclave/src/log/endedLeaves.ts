/**
 * Remembers the leaves of statements that were erased, or released and deleted, so that none is created again. While a leaf is remembered it is
 * recognized; later statements are dated after all leaves that are no longer remembered. This way, one statement dated far ahead by a jumping
 * clock doesn't force all others to be dated after it.
 */
export type EndedLeaves = {
  add(leaf: string, signedAtMs: number): void
  /** Whether a statement ended, or may have. */
  has(leaf: string, signedAtMs: number): boolean
  /** The latest date of the leaves that are no longer remembered. */
  untilMs(): number
}

/** Remembers at most `most` leaves: those with the latest dates. */
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
