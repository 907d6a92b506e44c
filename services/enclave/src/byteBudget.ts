/** How many bytes may be held at once, over all connections. */
export type ByteBudget = {
  /** False, and nothing taken, where there is no room for so many more. */
  take(bytes: number): boolean
  giveBack(bytes: number): void
  held(): number
  /** The most that was ever held. */
  peak(): number
}

export function createByteBudget(maxBytes: number): ByteBudget {
  let held = 0
  let peak = 0
  return {
    take(bytes) {
      if (!(held + bytes <= maxBytes)) return false
      held += bytes
      peak = Math.max(peak, held)
      return true
    },
    giveBack(bytes) {
      held -= bytes
    },
    held: () => held,
    peak: () => peak,
  }
}
