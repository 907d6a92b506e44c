import type { Clock } from '../ports.ts'
import { createTime, type Time } from './time.ts'

/** The time of a boot at `bootedAt`, known since then. */
export function createKnownTime(clock: Clock, bootedAt = clock.now()): Time {
  let isBooted = false
  const time = createTime({ now: () => (isBooted ? clock.now() : bootedAt) })
  isBooted = true
  time.learn(0)
  return time
}
