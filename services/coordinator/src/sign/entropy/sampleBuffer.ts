import type { Witness } from '@countersign/receipt'
import type { Clock } from '../../system.ts'
import { checkTime } from './checkSample.ts'

/** A checked, claimed sample. */
export type Sample = { witness: Witness; timestampMs: number }

/** Ready samples, ordered by time. Samples older than `maxAgeMs` are never returned. */
export function createSampleBuffer(parameters: { clock: Clock; maxAgeMs: number; freshMs: number; capacity: number }) {
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
    /** Samples dropped because they expired before use or exceeded the capacity. */
    get unused() {
      return unused
    },
    /** The number of samples young enough to count as stock. */
    countFresh: () => samples.length - findFresh(),
    /** Samples expire over time. If the clock was set back, some are dated in the future. */
    dropUnusable() {
      const now = clock.now()
      const usable = samples.filter(({ timestampMs }) => checkTime(timestampMs, { now, maxAgeMs }) === undefined)
      unused += samples.length - usable.length
      samples = usable
    },
    /** Keeps `capacity` samples in addition to the `reserved` ones. */
    add(added: readonly Sample[], { reserved }: { reserved: number }) {
      samples = [...samples, ...added].sort((left, right) => left.timestampMs - right.timestampMs)
      const excess = samples.length - capacity - reserved
      if (excess > 0) {
        samples.splice(0, excess)
        unused += excess
      }
    },
    /**
     * Takes the oldest fresh samples first, so that none expires unused, then the newest of the reserve. The caller must not ask for more
     * than there are.
     */
    take(count: number): Witness[] {
      const start = Math.min(findFresh(), samples.length - count)
      return samples.splice(start, count).map(({ witness }) => witness)
    },
    /** Removes and returns the samples that fail the check. */
    removeBad(isGood: (witness: Witness) => boolean): Witness[] {
      const { good = [], bad = [] } = Object.groupBy(samples, ({ witness }) => (isGood(witness) ? 'good' : 'bad'))
      samples = good
      return bad.map(({ witness }) => witness)
    },
    clear() {
      unused += samples.length
      samples = []
    },
  }
}
