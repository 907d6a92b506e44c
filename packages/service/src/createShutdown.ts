export type Shutdown = {
  /**
   * Remembers how to stop what was just started; what is added in one call stops together. Throws once everything has stopped: nobody
   * would stop this.
   */
  add(...stops: (() => unknown)[]): void
  /** Stops everything, what was added last first, one after the other. Further calls wait for the first. */
  run(): Promise<void>
}

/**
 * Collects how to stop what a process starts, beside the place where it is started. Every stop runs, even if another fails; then
 * `run` rejects with the failure, or with an `AggregateError` of several.
 *
 * @example
 * const shutdown = createShutdown()
 * const store = await openStore()
 * shutdown.add(() => store.close())
 */
export function createShutdown(): Shutdown {
  const groups: (() => unknown)[][] = []
  let running: Promise<void> | undefined
  let isOver = false

  async function stopAll() {
    const failures: unknown[] = []
    for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
      // A function of its own makes a promise even of a stop that throws at once.
      for (const stopped of await Promise.allSettled(group.map(async (stop) => stop()))) {
        if (stopped.status === 'rejected') failures.push(stopped.reason)
      }
    }
    isOver = true
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} parts could not be stopped`)
  }

  return {
    add(...stops) {
      if (isOver) throw new Error('everything has stopped already')
      groups.push(stops)
    },
    run() {
      running ??= stopAll()
      return running
    },
  }
}
