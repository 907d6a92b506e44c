import type { EntropySetting } from '@countersign/protocol/core'
import { compareCanonical } from './canonicalOrder.ts'
import type { Policy, Schedule } from './policy.ts'

/*
 * A schedule needs no state: each nonce executes once per chain, starting at 0, and has a time. Uses BigInt, because the product of nonce and
 * period can exceed 2^53.
 */

/** When a nonce can be signed, in milliseconds since 1970. */
export function toDueMs({ startsAtMs, everyS, count }: Schedule, nonce: number): bigint {
  return BigInt(startsAtMs) + (BigInt(nonce) / BigInt(count)) * BigInt(everyS) * 1000n
}

/** Whether a nonce can be signed at the time of this sample. */
export function isDue(schedule: Schedule, { nonce, sampleMs }: { nonce: number; sampleMs: number }): boolean {
  return BigInt(sampleMs) >= toDueMs(schedule, nonce)
}

/** Whether samples of these sources can ever satisfy a policy's schedule. True without a schedule. */
export function canTellTime({ time }: Policy, sources: readonly EntropySetting[]): boolean {
  return time === undefined || time.some((named) => sources.some((source) => compareCanonical(named, source) === 0))
}
