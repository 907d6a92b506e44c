import type { Log } from '@countersign/service'
import type { Schedule } from '../src/system.ts'

/** A clock and timers that a test controls, and a log that it reads. */
export function createManualTime(start: Date) {
  let now = start.getTime()
  const tasks = new Map<symbol, { at: number; task: () => void }>()
  const lines: { msg: string; code?: unknown }[] = []
  let onLine = () => {}
  const write = (line: { msg: string }) => {
    lines.push(line)
    onLine()
  }
  const schedule: Schedule = (task, delayMs) => {
    const id = Symbol('task')
    tasks.set(id, { at: now + delayMs, task })
    return () => tasks.delete(id)
  }
  const log: Pick<Log, 'info' | 'warn'> = { info: write, warn: write }
  return {
    clock: { now: () => now },
    schedule,
    log,
    lines,
    /** Resolves at the next log line, which ends some work. */
    nextLine: () => new Promise<void>((resolve) => (onLine = resolve)),
    /** The remaining time of each timer. */
    delays: () => [...tasks.values()].map(({ at }) => at - now),
    /** Moves the clock without running timers. */
    jump(durationMs: number) {
      now += durationMs
    },
    /** Moves the clock and runs the due timers once. */
    pass(durationMs: number) {
      now += durationMs
      for (const [id, { at, task }] of [...tasks]) {
        if (at > now) continue
        tasks.delete(id)
        task()
      }
    },
  }
}
