import { type AnyWitness, parseTimestamp } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import type { Store } from '../../store/openStore.ts'
import type { Clock } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import { checkSample, createEntropyKeys, isSampleSigned, type SampleFault } from './checkSample.ts'
import type { EntropySource } from './entropySource.ts'
import type { Sample } from './sampleBuffer.ts'

/** Samples that were bought but can't be used, each counted once. */
export type BuyerStats = {
  /** By fault: rejected by the check here or by the enclave. */
  refused: Readonly<Record<string, number>>
  /** Received twice, or claimed before by any coordinator. */
  replayed: number
  /** Failed requests to the source. */
  failures: number
}

/** `by_enclave`: the signature is valid, but the enclave rejected the sample. */
type Refusal = SampleFault | 'by_enclave'

export type SampleBuyerParameters = {
  source: EntropySource
  store: Pick<Store, 'claimSamples'>
  clock: Clock
  /** The pinned keys of the source, in hex. Empty for a source that doesn't sign. */
  publicKeys: readonly string[]
  /** Older samples are never returned. */
  maxAgeMs: number
  allowUnsigned: boolean
  log: { warn(entry: { msg: string; source: string; [field: string]: string | number }): void }
}

/**
 * Fetches samples, checks everything but their signatures, and claims them in the database, so that no two signatures share one, on any
 * coordinator.
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

  /** Stops waiting at shutdown, even if the source hangs. */
  async function untilStopped<Result>(task: Promise<Result>): Promise<Result> {
    const stopped = Promise.withResolvers<never>()
    onStop.add(stopped.reject)
    try {
      return await Promise.race([task, stopped.promise])
    } finally {
      onStop.delete(stopped.reject)
    }
  }

  /** The valid samples, by value. */
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

  /** Returns the samples that the store confirms as ours, each value once, in the form checked here. */
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
     * One request to the source. Returns valid, claimed samples. Throws the errors of the source and the store, and `shutting_down` after
     * `stop`.
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
    /** Whether the source has signed the sample, for sources that sign. */
    isGenuine,
    /** Counts samples rejected after purchase: by the enclave, or because of their signature. */
    refuse(samples: readonly AnyWitness[]) {
      countFaults(samples.map((sample) => (isGenuine(sample) ? 'by_enclave' : 'wrong_signature')))
    },
    /** Start time of the oldest claim that the database has not answered; undefined if there is none. */
    claimingSince: (): number | undefined => claims.values().next().value?.since,
    /** Stops waiting for the source at once. A claim in progress continues. */
    stop(error: Error) {
      isStopped = true
      for (const cancel of [...onStop]) cancel(error)
    },
    stats: (): BuyerStats => ({ ...counts, refused: { ...refused } }),
  }
}
