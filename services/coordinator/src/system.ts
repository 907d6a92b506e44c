import { randomBytes } from 'node:crypto'
import type { Clock, Random, Schedule } from './ports.ts'

/* Time and randomness of the machine. Tests bring their own. */

export const systemClock: Clock = { now: () => Date.now() }

export const systemRandom: Random = (length) => new Uint8Array(randomBytes(length))

/** These timers do not keep a process alive that has nothing else to do. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timer = setTimeout(task, delayMs)
  timer.unref()
  return () => clearTimeout(timer)
}
