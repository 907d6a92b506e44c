import type { Witness } from '@countersign/receipt'
import type { Clock } from '../../system.ts'
import { checkTime } from './checkSample.ts'

/** A checked, claimed sample. */
export type Sample = { witness: Witness; timestampMs: number }

/** Samples that are ready, by their time. None is handed out when it is older than `maxAgeMs`. */
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
    /** Samples that were dropped: too old before a caller needed them, or more than the buffer holds. */
    get unused() {
      return unused
    },
    /** Samples young enough to count as ahead of demand. */
    countFresh: () => samples.length - findFresh(),
    /** Time alone makes samples too old, and a clock that was set back makes some too new. */
    dropUnusable() {
      const now = clock.now()
      const usable = samples.filter(({ timestampMs }) => checkTime(timestampMs, { now, maxAgeMs }) === undefined)
      unused += samples.length - usable.length
      samples = usable
    },
    /** Keeps `capacity` samples beside the `reserved` ones. */
    add(added: readonly Sample[], { reserved }: { reserved: number }) {
      samples = [...samples, ...added].sort((left, right) => left.timestampMs - right.timestampMs)
      const excess = samples.length - capacity - reserved
      if (excess > 0) {
        samples.splice(0, excess)
        unused += excess
      }
    },
    /**
     * The oldest fresh ones first, so that none goes stale for nothing; then from the reserve, the newest first. The caller asks for no more
     * than there are.
     */
    take(count: number): Witness[] {
      const start = Math.min(findFresh(), samples.length - count)
      return samples.splice(start, count).map(({ witness }) => witness)
    },
    /** Removes and returns those that a check fails. */
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
