import type { Log } from './http/log.ts'
import { ConfigError } from './readEnv.ts'

export type RunningService = { stop(reason: string): Promise<void> }

/** Runs a service until it is told to stop. One that cannot start says why, and ends with 1. */
export async function runService(log: Log, starting: Promise<RunningService>): Promise<void> {
  const complain = (error: unknown) => {
    log.error({ msg: 'Could not stop in order', reason: error instanceof Error ? error.message : 'unknown' })
    process.exitCode = 1
  }
  // From the first moment: told to stop while it starts, it stops when it has started.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      // One that could not start is told below.
      starting.then(
        ({ stop }) => stop(signal).catch(complain),
        () => {},
      )
    })
  }
  try {
    await starting
  } catch (error) {
    if (error instanceof ConfigError) for (const fault of error.faults) log.error({ msg: 'Refused to start', fault })
    else log.error({ msg: 'Could not start', reason: error instanceof Error ? error.message : 'unknown' })
    // At once: what was opened before the failure must not keep the process alive.
    process.exit(1)
  }
}
