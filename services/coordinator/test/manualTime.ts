import type { Log } from '@countersign/service'
import type { Schedule } from '../src/system.ts'

/** A clock and timers that a test moves by hand, and a log that it reads. */
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
    /** Resolves at the next line of the log: work that ends with one has ended. */
    nextLine: () => new Promise<void>((resolve) => (onLine = resolve)),
    /** How long until each timer runs. */
    delays: () => [...tasks.values()].map(({ at }) => at - now),
    /** Moves the clock and leaves the timers alone. */
    jump(durationMs: number) {
      now += durationMs
    },
    /** Moves the clock and runs the timers that are due then, once. */
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
