export type Shutdown = {
  /** Remembers how to stop what was just started. Throws once everything has stopped: nobody would stop this. */
  add(stop: () => unknown): void
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
  const stops: (() => unknown)[] = []
  let running: Promise<void> | undefined
  let isOver = false

  async function stopAll() {
    const failures: unknown[] = []
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) {
      try {
        await stop()
      } catch (error) {
        failures.push(error)
      }
    }
    isOver = true
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} parts could not be stopped`)
  }

  return {
    add(stop) {
      if (isOver) throw new Error('everything has stopped already')
      stops.push(stop)
    },
    run() {
      running ??= stopAll()
      return running
    },
  }
}
