import type { Clock } from '../../src/ports.ts'
import { createTime, type Time } from '../../src/time/time.ts'

/** The time of a boot at `bootedAt`, known since then. It uses only the clock, without monotonic time. */
export function createKnownTime(clock: Clock, bootedAt = clock.now()): Time {
  let isBooted = false
  const time = createTime({ clock: { now: () => (isBooted ? clock.now() : bootedAt) }, elapsedMs: () => 0 })
  isBooted = true
  time.learn(0)
  return time
}
