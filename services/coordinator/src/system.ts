import { randomBytes, randomFillSync } from 'node:crypto'

/* Time and randomness of the machine. Tests bring their own. */

/** Milliseconds since 1970. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** Runs a task once, after a delay. Returns a function that cancels it. */
export type Schedule = (task: () => void, delayMs: number) => () => void

export const systemClock: Clock = { now: () => Date.now() }

export const systemRandom = createSystemRandom()

/** Secrets and ids are short: each call of the system is for many of them. No byte is handed out twice, and none is kept once it is. */
function createSystemRandom(): Random {
  const pool = new Uint8Array(4_096)
  let used = pool.length
  return (length) => {
    if (length > pool.length) return new Uint8Array(randomBytes(length))
    if (used + length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const bytes = pool.slice(used, used + length)
    pool.fill(0, used, used + length)
    used += length
    return bytes
  }
}

/** These timers do not keep a process alive that has nothing else to do. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timer = setTimeout(task, delayMs)
  timer.unref()
  return () => clearTimeout(timer)
}
