import type { Schedule } from '../system.ts'

export type Repeating = {
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
