import type { EntropySetting } from '@countersign/protocol'
import { compareCanonical } from './canonicalOrder.ts'
import type { Policy } from './policy.ts'

/** Whether samples of these sources can ever be those that a policy's schedule waits for. Without a schedule it waits for none. */
export function canTellTime({ time }: Policy, sources: readonly EntropySetting[]): boolean {
  return time === undefined || time.some((named) => sources.some((source) => compareCanonical(named, source) === 0))
}
