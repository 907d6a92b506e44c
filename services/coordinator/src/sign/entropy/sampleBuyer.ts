import { type AnyWitness, parseTimestamp } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import type { Store } from '../../store/openStore.ts'
import type { Clock } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import { checkSample, createEntropyKeys, isSampleSigned, type SampleFault } from './checkSample.ts'
import type { EntropySource } from './entropySource.ts'
import type { Sample } from './sampleBuffer.ts'

/** Samples that were bought and are not used, each counted once. */
export type BuyerStats = {
  /** By fault: refused by the check here, or by the enclave. */
  refused: Readonly<Record<string, number>>
  /** Sent twice, or claimed before, by any coordinator. */
  replayed: number
  /** Requests to the source that failed. */
  failures: number
}

/** `by_enclave`: its signature holds, and the enclave refuses it. */
type Refusal = SampleFault | 'by_enclave'

export type SampleBuyerParameters = {
  source: EntropySource
  store: Pick<Store, 'claimSamples'>
  clock: Clock
  /** Pinned keys of the source, hex. Empty for a source that does not sign. */
  publicKeys: readonly string[]
  /** No sample is handed out when it is older. */
  maxAgeMs: number
  allowUnsigned: boolean
  log: { warn(entry: { msg: string; source: string; [field: string]: string | number }): void }
}

/**
 * Gets samples from the source, checks all but their signatures, and claims them, so that no two signatures share one, on any coordinator.
 */
export function createSampleBuyer(parameters: SampleBuyerParameters) {
  const { source, store, clock, maxAgeMs, allowUnsigned, log } = parameters
  const publicKeys = createEntropyKeys(parameters.publicKeys)
  const refused: Record<Refusal, number> = {
    malformed: 0,
    unsigned: 0,
    foreign_key: 0,
    wrong_signature: 0,
    stale: 0,
    future: 0,
    by_enclave: 0,
  }
  const counts = { replayed: 0, failures: 0 }
  const onStop = new Set<(error: Error) => void>()
  const claims = new Set<{ since: number }>()
  let isStopped = false

  /** A source that hangs does not delay the end. */
  async function untilStopped<Result>(task: Promise<Result>): Promise<Result> {
    const stopped = Promise.withResolvers<never>()
    onStop.add(stopped.reject)
    try {
      return await Promise.race([task, stopped.promise])
    } finally {
      onStop.delete(stopped.reject)
    }
  }

  /** The good ones, by value. */
  function check(witnesses: readonly Witness[]): Map<string, Sample> {
    const options = { publicKeys, now: clock.now(), maxAgeMs, isSigned: source.isSigned, allowUnsigned }
    const checked = new Map<string, Sample>()
    const faults: Refusal[] = []
    for (const witness of witnesses) {
      const fault = checkSample(witness, options)
      const timestampMs = parseTimestamp(witness.timestamp)
      if (fault !== undefined || timestampMs === undefined) {
        faults.push(fault ?? 'malformed')
      } else if (checked.has(witness.valueHex)) {
        counts.replayed += 1
      } else {
        checked.set(witness.valueHex, { witness, timestampMs })
      }
    }
    countFaults(faults)
    return checked
  }

  function countFaults(faults: readonly Refusal[]) {
    for (const [reason, { length: count }] of Map.groupBy(faults, (fault) => fault)) {
      refused[reason] += count
      log.warn({ msg: 'Refused entropy samples', source: source.name, reason, count })
    }
  }

  const isGenuine = (sample: AnyWitness) => !source.isSigned || (!('kind' in sample) && isSampleSigned(sample))

  /** Only what the store says is ours, each value once, and as it was checked here. */
  async function claim(checked: Map<string, Sample>): Promise<Sample[]> {
    const offered = [...checked.values()].map(({ witness }) => witness)
    const begun = { since: clock.now() }
    claims.add(begun)
    const given = await store.claimSamples(offered, begun.since).finally(() => claims.delete(begun))
    const values = new Set(given.map(({ valueHex }) => valueHex))
    const claimed = [...checked.values()].filter(({ witness }) => values.has(witness.valueHex))
    const replayed = checked.size - claimed.length
    if (replayed > 0) {
      counts.replayed += replayed
      log.warn({ msg: 'Refused entropy samples', source: source.name, reason: 'replayed', count: replayed })
    }
    return claimed
  }

  return {
    /**
     * One request to the source: returns the samples that are good and claimed. Throws what the source and the store throw, and
     * `shutting_down` once it is stopped.
     */
    async buy(count: number): Promise<Sample[]> {
      try {
        const answer = await untilStopped(source.getSamples(count))
        const checked = check(answer.slice(0, count))
        if (checked.size === 0 || isStopped) return []
        return await claim(checked)
      } catch (error) {
        if (!isStopped) {
          counts.failures += 1
          log.warn({ msg: 'Got no entropy samples', source: source.name, reason: toReason(error).code })
        }
        throw error
      }
    },
    /** Whether its source has signed a sample, where it signs. */
    isGenuine,
    /** Counts samples that were bought and then refused: by the enclave, or because of their signature. */
    refuse(samples: readonly AnyWitness[]) {
      countFaults(samples.map((sample) => (isGenuine(sample) ? 'by_enclave' : 'wrong_signature')))
    },
    /** Start time of the oldest claim that the database has not answered; undefined if there is none. */
    claimingSince: (): number | undefined => claims.values().next().value?.since,
    /** Ends waiting for the source, at once. A claim under way goes on. */
    stop(error: Error) {
      isStopped = true
      for (const cancel of [...onStop]) cancel(error)
    },
    stats: (): BuyerStats => ({ ...counts, refused: { ...refused } }),
  }
}
