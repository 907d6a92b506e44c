import type { Log } from './log.ts'
import { readCauseCode } from './readCode.ts'
import { ConfigError, describeFault } from './readEnv.ts'

export type RunningService = {
  /** Called once, with the received signal. */
  stop(signal: string): Promise<void>
  /** Rejects if the service can't continue. Then the process ends at once. */
  ended?: Promise<unknown>
}

export type RunServiceDeps = {
  log: Log
  /** Default: the current process. */
  process?: Pick<NodeJS.Process, 'on' | 'exit' | 'exitCode'>
}

/**
 * Runs a service until SIGTERM or SIGINT. Ignores further signals during the stop. If the service can't start or continue, reports the reason
 * and ends the process with 1. If stopping fails, reports it and sets the exit code 1.
 */
export async function runService(deps: RunServiceDeps, start: () => Promise<RunningService>): Promise<void> {
  const { log, process = globalThis.process } = deps
  // An async function turns a synchronous throw into a rejection.
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
  // Listens from the start: after a signal during the start, the service stops when it has started. The listener stays, because a second
  // signal
  // would otherwise end the process and cut off pending calls.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
  // Ends the process at once, because open handles would keep it alive.
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

/** The reasons of several failures. Of their causes only the codes, because a driver's messages may contain anything. */
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
