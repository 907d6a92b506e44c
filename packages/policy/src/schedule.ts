import type { EntropySetting } from '@countersign/protocol/core'
import { compareCanonical } from './canonicalOrder.ts'
import type { Policy, Schedule } from './policy.ts'

/*
 * A schedule counts without any state: a nonce executes once on each chain, from 0 on, and each has its time. In BigInt throughout:
 * nonce and period together go far beyond 2^53.
 */

/** When a nonce may be signed, in milliseconds since 1970. */
export function toDueMs({ startsAtMs, everyS, count }: Schedule, nonce: number): bigint {
  return BigInt(startsAtMs) + (BigInt(nonce) / BigInt(count)) * BigInt(everyS) * 1000n
}

/** Whether a nonce may be signed at the time that a sample proves. */
export function isDue(schedule: Schedule, { nonce, sampleMs }: { nonce: number; sampleMs: number }): boolean {
  return BigInt(sampleMs) >= toDueMs(schedule, nonce)
}

/** Whether samples of these sources can ever be those that a policy's schedule waits for. Without a schedule it waits for none. */
export function canTellTime({ time }: Policy, sources: readonly EntropySetting[]): boolean {
  return time === undefined || time.some((named) => sources.some((source) => compareCanonical(named, source) === 0))
}
