import type { Schedule } from '../system.ts'

type Repeating = {
  /** Resolves after the first run. */
  first: Promise<void>
  stop(): void
}

/** Runs a function now, and again `everyMs` after each end. It must not throw. The signal aborts on stop. */
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
/** Minimum delay, because full jitter can be zero. */
const LEAST_MS = 250

/**
 * The delay after a failure: exponential with full jitter, so that simultaneous failures are not retried simultaneously.
 * `attempt` counts the earlier failures. `random` returns a number in [0, 1).
 */
export function toBackoffMs(parameters: {
  attempt: number
  random: () => number
  /** The longest delay. Default: five minutes. */
  capMs?: number
}): number {
  const { attempt, random, capMs = CAP_MS } = parameters
  return Math.max(LEAST_MS, random() * Math.min(capMs, BASE_MS * 2 ** attempt))
}
