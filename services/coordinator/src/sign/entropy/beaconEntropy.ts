import { type DrandBeacon, type DrandWitness, SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import { CoordinatorError } from '../../errors.ts'
import type { Clock } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import type { BeaconSource } from './drand.ts'
import type { Entropy } from './readAhead.ts'

export type BeaconEntropyParameters = {
  source: BeaconSource
  beacon: Pick<DrandBeacon, 'periodS'>
  clock: Clock
  /** Older rounds are never returned. */
  maxAgeMs: number
  log: { warn(entry: { msg: string; source: string; [field: string]: string | number }): void }
}

/** The pause before a relay that doesn't have the next round yet is asked again. */
const RETRY_MS = 500

/** Returns the newest round of a beacon to all callers. A round is public and serves any number of signatures. */
export function createBeaconEntropy({ source, beacon, clock, maxAgeMs, log }: BeaconEntropyParameters): Entropy {
  let newest: DrandWitness | undefined
  let asking: Promise<void> | undefined
  let askAgainAt = 0
  let isStopped = false

  const isUsable = (round: DrandWitness | undefined): round is DrandWitness => {
    if (round === undefined) return false
    const ageMs = clock.now() - Date.parse(round.timestamp)
    return ageMs <= maxAgeMs && ageMs >= -SAMPLE_TOLERANCE_MS
  }

  const isNextDue = () =>
    newest === undefined || clock.now() >= Date.parse(newest.timestamp) + 1000 * beacon.periodS || !isUsable(newest)

  async function ask() {
    try {
      const round = await source.getRound()
      // Never go back to an older round, in case a relay lags or lies. Never accept an early round, because it would keep all later rounds
      // out.
      if (isUsable(round) && (newest === undefined || round.sequence > newest.sequence)) newest = round
    } catch (error) {
      log.warn({ msg: 'Got no entropy samples', source: 'drand', reason: toReason(error).code })
    } finally {
      askAgainAt = clock.now() + RETRY_MS
      asking = undefined
    }
  }

  async function take(count: number): Promise<DrandWitness[]> {
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError('count must be a natural number')
    if (isStopped) throw new CoordinatorError('shutting_down', 'the service is shutting down')
    if (count === 0) return []
    if (isNextDue() && (clock.now() >= askAgainAt || !isUsable(newest))) asking ??= ask()
    // If the current round is fresh enough, no caller waits for the next.
    if (!isUsable(newest)) await asking
    const round = newest
    if (!isUsable(round)) throw new CoordinatorError('entropy_unavailable', 'no fresh round of the beacon is available')
    return Array.from({ length: count }, () => round)
  }

  return {
    take,
    // The source has verified each round.
    takeVerified: take,
    async stop() {
      isStopped = true
      await asking
    },
  }
}
