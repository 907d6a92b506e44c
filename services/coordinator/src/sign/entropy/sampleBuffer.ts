import type { Witness } from '@countersign/receipt'
import type { Clock } from '../../system.ts'
import { checkTime } from './checkSample.ts'

/** A checked, claimed sample. */
export type Sample = { witness: Witness; timestampMs: number }

export type SampleBuffer = {
  readonly size: number
  /** Samples that were dropped: too old before a caller needed them, or more than the buffer holds. */
  readonly unused: number
  /** Samples young enough to count as ahead of demand. */
  countFresh(): number
  /** Time alone makes samples too old, and a clock that was set back makes some too new. */
  dropUnusable(): void
  /** Keeps `capacity` samples beside the `reserved` ones. */
  add(samples: readonly Sample[], options: { reserved: number }): void
  /** The caller asks for no more than there are. */
  take(count: number): Witness[]
  clear(): void
}

/** Samples that are ready, by their time. None is handed out when it is older than `maxAgeMs`. */
export function createSampleBuffer(parameters: {
  clock: Clock
  maxAgeMs: number
  freshMs: number
  capacity: number
}): SampleBuffer {
  const { clock, maxAgeMs, freshMs, capacity } = parameters
  /** Oldest first. */
  let samples: Sample[] = []
  let unused = 0

  /** The index of the first fresh sample. */
  function findFresh(): number {
    const since = clock.now() - freshMs
    const index = samples.findIndex(({ timestampMs }) => timestampMs >= since)
    return index < 0 ? samples.length : index
  }

  return {
    get size() {
      return samples.length
    },
    get unused() {
      return unused
    },
    countFresh: () => samples.length - findFresh(),
    dropUnusable() {
      const now = clock.now()
      const usable = samples.filter(({ timestampMs }) => checkTime(timestampMs, { now, maxAgeMs }) === undefined)
      unused += samples.length - usable.length
      samples = usable
    },
    add(added, { reserved }) {
      samples = [...samples, ...added].sort((left, right) => left.timestampMs - right.timestampMs)
      const excess = samples.length - capacity - reserved
      if (excess > 0) {
        samples.splice(0, excess)
        unused += excess
      }
    },
    /** The oldest fresh ones first, so that none goes stale for nothing; then from the reserve, the newest first. */
    take(count) {
      const start = Math.min(findFresh(), samples.length - count)
      return samples.splice(start, count).map(({ witness }) => witness)
    },
    clear() {
      unused += samples.length
      samples = []
    },
  }
}
