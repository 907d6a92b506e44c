import type { Schedule } from '../system.ts'

type Repeating = {
  /** Resolves when it has run for the first time. */
  first: Promise<void>
  stop(): void
}

/** Runs something now, and again so long after each end of it. It must not throw; the signal says that nobody wants it any more. */
export function repeat(
  run: (signal: AbortSignal) => Promise<void>,
  { schedule, everyMs }: { schedule: Schedule; everyMs: number },
): Repeating {
  const stopping = new AbortController()
  let cancel = () => {}

  async function turn() {
    await run(stopping.signal)
    if (!stopping.signal.aborted) cancel = schedule(() => void turn(), everyMs)
  }

  return {
    first: turn(),
    stop() {
      stopping.abort()
      cancel()
    },
  }
}

const BASE_MS = 1_000
const CAP_MS = 300_000
/** Chance may say zero, and a service that is down is not helped by being asked at once. */
const LEAST_MS = 250

/**
 * How long to wait after a failure: exponential, with full jitter, so that what failed together does not come back together.
 * `attempt` counts the failures before this one; `random` answers from [0, 1).
 */
export function toBackoffMs(parameters: {
  attempt: number
  random: () => number
  /** The longest; five minutes by default. */
  capMs?: number
}): number {
  const { attempt, random, capMs = CAP_MS } = parameters
  return Math.max(LEAST_MS, random() * Math.min(capMs, BASE_MS * 2 ** attempt))
}
