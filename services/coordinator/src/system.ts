import { randomBytes, randomFillSync } from 'node:crypto'

/* The machine's time and randomness. Tests inject their own. */

/** Milliseconds since 1970. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** Runs a task once, after a delay. Returns a function that cancels it. */
export type Schedule = (task: () => void, delayMs: number) => () => void

export const systemClock: Clock = { now: () => Date.now() }

export const systemRandom = createSystemRandom()

/**
 * Fetches random bytes in blocks, because each system call is slow compared to the few bytes that a secret or id needs. Bytes are used once
 * and then erased.
 */
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

/** These timers don't keep an otherwise idle process alive. */
export const systemSchedule: Schedule = (task, delayMs) => {
  const timer = setTimeout(task, delayMs)
  timer.unref()
  return () => clearTimeout(timer)
}
