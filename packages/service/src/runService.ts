import type { Log } from './log.ts'
import { readCauseCode } from './readCode.ts'
import { ConfigError, describeFault } from './readEnv.ts'

export type RunningService = {
  /** Called once, with the signal that the process got. */
  stop(signal: string): Promise<void>
  /** Rejects when the service cannot go on; then the process ends at once. */
  ended?: Promise<unknown>
}

export type RunServiceDeps = {
  log: Log
  /** The process that runs it; its own by default. */
  process?: Pick<NodeJS.Process, 'on' | 'exit' | 'exitCode'>
}

/**
 * Runs a service until SIGTERM or SIGINT; further signals while it stops have no effect. A service that cannot start, or cannot go on, reports why and ends the process with 1; one
 * that fails to stop in order reports it and leaves the exit code 1.
 */
export async function runService(deps: RunServiceDeps, start: () => Promise<RunningService>): Promise<void> {
  const { log, process = globalThis.process } = deps
  // A function of its own makes a promise even of a start that throws at once.
  const starting = (async () => start())()
  let isStopping = false
  async function stop(signal: string) {
    if (isStopping) return
    isStopping = true
    try {
      const running = await starting.catch(() => undefined)
      await running?.stop(signal)
    } catch (error) {
      log.error({ msg: 'Could not stop in order', reason: toReason(error) })
      process.exitCode = 1
    }
  }
  // From the first moment: a service that gets a signal while it starts stops when it has started. And for good: without a listener a
  // second signal would end the process at once, and cut the calls that the stop is waiting for.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
  // At once: what is open already must not keep the process alive.
  const giveUp = (msg: string) => (error: unknown) => {
    if (error instanceof ConfigError)
      for (const each of error.faults) log.error({ msg: 'Refused to start', fault: describeFault(each) })
    else log.error({ msg, reason: toReason(error) })
    process.exit(1)
  }
  const running = await starting.catch(giveUp('Could not start'))
  // Not awaited: it may never settle.
  running?.ended?.catch(giveUp('Could not go on'))
}

/** Of several failures together, each reason. Of what caused one only its code: the words of a driver may hold anything. */
function toReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  if (!(error instanceof AggregateError)) return `${error.message}${toCauseCode(error)}`
  const reasons = error.errors.map(toReason).join('; ')
  return error.message === '' ? reasons : `${error.message}: ${reasons}`
}

function toCauseCode(error: Error): string {
  const code = readCauseCode(error)
  return code === undefined ? '' : ` (${code})`
}
