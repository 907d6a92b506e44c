export type Shutdown = {
  /**
   * Adds functions that stop what was just started. Those of one call run together. After the shutdown has finished it throws, because they
   * would
   * never run.
   */
  add(...stops: (() => unknown)[]): void
  /** Runs all stop functions, the last added first, one after the other. Further calls wait for the first. */
  run(): Promise<void>
}

/**
 * Collects stop functions where things are started. All of them run, even if one fails. Then `run` rejects with the failure, or with an
 * `AggregateError` of several.
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
      // An async function turns a synchronous throw into a rejection.
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
