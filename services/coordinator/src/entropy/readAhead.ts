import type { Witness } from '@countersign/receipt'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Entropy, EntropySource } from '../ports.ts'
import type { Store } from '../store/types.ts'
import { toReason } from '../toReason.ts'
import {
  type CheckSampleOptions,
  checkSample,
  checkTime,
  createEntropyKeys,
  parseTimestamp,
  type SampleFault,
} from './checkSample.ts'

/** Every sample that ever came in ends in one of these, and each is counted once. */
type ReadAheadStats = {
  /** Ready to be handed out. */
  buffered: number
  handedOut: number
  /** Refused by the check, by fault. */
  refused: Readonly<Record<SampleFault, number>>
  /** Sent twice, or claimed before, by whomever. */
  replayed: number
  /** Claimed, but too old before anyone asked, or more than the buffer holds. */
  unused: number
  /** Requests to the source that failed. */
  failures: number
}

export type ReadAhead = Entropy & { stats(): ReadAheadStats }

export type ReadAheadParameters = {
  source: EntropySource
  store: Pick<Store, 'claimSamples'>
  clock: Clock
  /** Pinned keys of the source, hex. Empty for a source that does not sign. */
  publicKeys: readonly string[]
  /** `isSampleSigned` for each, on whatever thread. */
  checkSignatures(witnesses: readonly Witness[]): Promise<boolean[]>
  /** No sample is handed out when it is older. */
  maxAgeMs?: number
  /** Up to this age a sample counts as ahead of demand; older ones are a reserve, for when there is nothing fresher. */
  freshMs?: number
  /** Samples kept beside those that somebody waits for. */
  capacity?: number
  allowUnsigned?: boolean
  /** The longest that one `take` waits. */
  waitMs?: number
  /** The pause after a request that brought nothing new, doubled each time. */
  retryMs?: number
  log: { warn(entry: { msg: string; source: string; [field: string]: string | number }): void }
}

type Sample = { witness: Witness; timestampMs: number }
type Waiter = { count: number; resolve(witnesses: Witness[]): void; reject(error: unknown): void }

const MAX_SAMPLES = 256
/** Signatures that are checked in one go: a refill must not hold up the checks of signings for long. */
const CHECKS_AT_ONCE = 32
/** Requests that bring nothing new in a row, before those who wait are told. */
const MAX_FRUITLESS = 5
/** The share of the fresh time that is bought ahead: demand may fall to a fifth before a sample goes stale unused. */
const HORIZON = 1 / 5

/**
 * Keeps checked, claimed samples ready, so that neither the latency of the source nor the checks are on the way of a
 * request. Samples are claimed as they come in, so no two signatures share one, on any coordinator. How much is bought
 * ahead follows recent demand, and only a `take` has anything bought: idle, nothing is fetched and no timer runs.
 *
 * `take` throws `entropy_unavailable` when the source fails, brings nothing usable or is too slow, and what the store
 * throws when claiming fails. Every failure is of those who waited; the next `take` asks again.
 *
 * @example
 * const entropy = createReadAhead({ source, store, clock, publicKeys: [key], log })
 * const [witness] = await entropy.take(1)
 */
export function createReadAhead(parameters: ReadAheadParameters): ReadAhead {
  const { source, store, clock, log, checkSignatures } = parameters
  const { maxAgeMs = 60_000, freshMs = 5_000, capacity = 1_024, allowUnsigned = false } = parameters
  const { waitMs = 2_000, retryMs = 100 } = parameters
  const publicKeys = createEntropyKeys(parameters.publicKeys)
  const horizonMs = freshMs * HORIZON

  /** By time, oldest first. */
  let buffer: Sample[] = []
  const waiters: Waiter[] = []
  let running: Promise<void> | undefined
  let hasAsked = false
  let isStopped = false
  const onStop = new Set<() => void>()
  /** Samples taken within the horizon, decaying: for a steady rate, what it takes in that time. */
  let demand = { amount: 0, at: Number.NEGATIVE_INFINITY }

  const refused: Record<SampleFault, number> = {
    malformed: 0,
    unsigned: 0,
    foreign_key: 0,
    wrong_signature: 0,
    stale: 0,
    future: 0,
  }
  const counts = { handedOut: 0, replayed: 0, unused: 0, failures: 0 }

  function getDemand(): number {
    // A clock that was set back lets nothing decay.
    return demand.amount * Math.exp(-Math.max(0, clock.now() - demand.at) / horizonMs)
  }

  function getTarget(): number {
    // Below a half, the last one who asked is forgotten.
    return Math.min(capacity, Math.round(getDemand()))
  }

  function countNeed(): number {
    return waiters.reduce((sum, { count }) => sum + count, 0)
  }

  function countFresh(): number {
    const since = clock.now() - freshMs
    return buffer.length - findFirst(buffer, since)
  }

  /** Time alone takes samples away, and a clock that was set back makes some too new. */
  function dropUnusable() {
    const now = clock.now()
    const usable = buffer.filter(({ timestampMs }) => checkTime(timestampMs, { now, maxAgeMs }) === undefined)
    counts.unused += buffer.length - usable.length
    buffer = usable
  }

  /** The oldest fresh ones first, so that none goes stale for nothing; then from the reserve, the newest first. */
  function pick(count: number): Witness[] {
    const firstFresh = findFirst(buffer, clock.now() - freshMs)
    const start = Math.min(firstFresh, buffer.length - count)
    counts.handedOut += count
    return buffer.splice(start, count).map(({ witness }) => witness)
  }

  /** In the order of asking: nobody is overtaken, so a large request is not starved by small ones. */
  function serve() {
    dropUnusable()
    while (waiters[0] && waiters[0].count <= buffer.length) {
      const waiter = waiters.shift()
      waiter?.resolve(pick(waiter.count))
    }
  }

  function fail(failed: readonly Waiter[], cause: unknown) {
    for (const waiter of failed) {
      const index = waiters.indexOf(waiter)
      if (index < 0) continue
      waiters.splice(index, 1)
      waiter.reject(cause instanceof CoordinatorError ? cause : unavailable(cause))
    }
  }

  /** A half of the target must be gone before more is bought: not a request to the source for every signature. */
  function isRefillDue(): boolean {
    const target = getTarget()
    return countFresh() < target / 2
  }

  async function run() {
    // Whoever asks in the same turn shares the first request.
    await Promise.resolve()
    let fruitless = 0
    while (!isStopped && (waiters.length > 0 || (hasAsked && isRefillDue()))) {
      hasAsked = false
      const waiting = [...waiters]
      const { admitted, error } = await refill()
      if (isStopped) return
      serve()
      if (admitted > 0) {
        fruitless = 0
      } else if (error !== undefined) {
        fail(waiting, error)
      } else if (waiters.length > 0) {
        fruitless += 1
        if (fruitless >= MAX_FRUITLESS) {
          fail(waiting, undefined)
          fruitless = 0
        } else {
          await pause(retryMs * 2 ** (fruitless - 1))
        }
      }
    }
  }

  function start() {
    running ??= run().finally(() => {
      running = undefined
      // Asked for between the last look and now.
      if (!isStopped && waiters.length > 0) start()
    })
  }

  /** Buys what is missing, at most `capacity` beyond what is waited for, in parallel requests of up to 256. */
  async function refill(): Promise<{ admitted: number; error: unknown }> {
    const need = countNeed()
    const missing = getTarget() + (need > 0 ? need - buffer.length : -countFresh())
    const requests: Promise<number>[] = []
    for (let left = Math.max(1, missing); left > 0 && requests.length < 4; left -= MAX_SAMPLES) {
      requests.push(request(Math.min(left, MAX_SAMPLES)))
    }
    let admitted = 0
    let error: unknown
    for (const outcome of await Promise.allSettled(requests)) {
      if (outcome.status === 'fulfilled') admitted += outcome.value
      else error ??= outcome.reason
    }
    return { admitted, error }
  }

  /** One request, from the source into the buffer. Answers how many samples came in. */
  async function request(count: number): Promise<number> {
    try {
      const answer = await untilStopped(source.getSamples(count))
      const checked = await check(answer.slice(0, count))
      if (checked.size === 0 || isStopped) return 0
      const claimed = await claim(checked)
      admit(claimed)
      serve()
      return claimed.length
    } catch (error) {
      if (!isStopped) {
        counts.failures += 1
        log.warn({ msg: 'Got no entropy samples', source: source.name, reason: toReason(error).code })
      }
      throw error
    }
  }

  /** The good ones, by value. */
  async function check(witnesses: readonly Witness[]): Promise<Map<string, Sample>> {
    const options = { publicKeys, now: clock.now(), maxAgeMs, isSigned: source.isSigned, allowUnsigned }
    const faults = await findFaults(witnesses, options)
    const checked = new Map<string, Sample>()
    const found = new Map<SampleFault, number>()
    for (const [index, witness] of witnesses.entries()) {
      const fault = faults[index]
      const timestampMs = parseTimestamp(witness.timestamp)
      if (fault !== undefined || timestampMs === undefined) {
        found.set(fault ?? 'malformed', (found.get(fault ?? 'malformed') ?? 0) + 1)
      } else if (checked.has(witness.valueHex)) {
        counts.replayed += 1
      } else {
        checked.set(witness.valueHex, { witness, timestampMs })
      }
    }
    for (const [reason, count] of found) {
      refused[reason] += count
      log.warn({ msg: 'Refused entropy samples', source: source.name, reason, count })
    }
    return checked
  }

  /** The fault of each, or undefined. */
  async function findFaults(witnesses: readonly Witness[], options: CheckSampleOptions) {
    const faults = witnesses.map((witness) => checkSample(witness, options))
    if (!options.isSigned) return faults
    const open = [...witnesses.keys()].filter((index) => faults[index] === undefined)
    for (let start = 0; start < open.length; start += CHECKS_AT_ONCE) {
      const part = open.slice(start, start + CHECKS_AT_ONCE)
      const isSigned = await checkSignatures(part.flatMap((index) => witnesses[index] ?? []))
      for (const [position, index] of part.entries()) if (!isSigned[position]) faults[index] = 'wrong_signature'
    }
    return faults
  }

  /** Only what the store says is ours, each value once, and as it was checked here. */
  async function claim(checked: Map<string, Sample>): Promise<Sample[]> {
    const offered = [...checked.values()].map(({ witness }) => witness)
    const values = new Set((await store.claimSamples(offered, clock.now())).map(({ valueHex }) => valueHex))
    const claimed = [...checked.values()].filter(({ witness }) => values.has(witness.valueHex))
    const replayed = checked.size - claimed.length
    if (replayed > 0) {
      counts.replayed += replayed
      log.warn({ msg: 'Refused entropy samples', source: source.name, reason: 'replayed', count: replayed })
    }
    return claimed
  }

  function admit(samples: readonly Sample[]) {
    buffer = [...buffer, ...samples].sort((left, right) => left.timestampMs - right.timestampMs)
    const excess = buffer.length - capacity - countNeed()
    if (excess > 0) {
      buffer.splice(0, excess)
      counts.unused += excess
    }
  }

  /** A source that hangs does not hold up the end. */
  async function untilStopped<Result>(task: Promise<Result>): Promise<Result> {
    let cancel = () => {}
    const stopped = new Promise<never>((_resolve, reject) => {
      cancel = () => reject(shuttingDown())
    })
    onStop.add(cancel)
    try {
      return await Promise.race([task, stopped])
    } finally {
      onStop.delete(cancel)
    }
  }

  function pause(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        onStop.delete(end)
        resolve()
      }
      const timer = setTimeout(end, durationMs)
      onStop.add(end)
    })
  }

  function wait(count: number): Promise<Witness[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => fail([waiter], undefined), waitMs)
      const waiter: Waiter = {
        count,
        resolve(witnesses) {
          clearTimeout(timer)
          resolve(witnesses)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      waiters.push(waiter)
    })
  }

  return {
    async take(count) {
      if (!Number.isSafeInteger(count) || count < 0) throw new RangeError('count must be a natural number')
      if (isStopped) throw shuttingDown()
      if (count === 0) return []
      demand = { amount: getDemand() + count, at: clock.now() }
      hasAsked = true
      const taken = wait(count)
      serve()
      if (waiters.length > 0 || isRefillDue()) start()
      return taken
    },
    async stop() {
      isStopped = true
      fail([...waiters], shuttingDown())
      for (const cancel of [...onStop]) cancel()
      // A claim that is under way still uses the store.
      await running
      counts.unused += buffer.length
      buffer = []
    },
    stats: () => ({ buffered: buffer.length, ...counts, refused: { ...refused } }),
  }
}

/** The index of the first sample of that time or later. */
function findFirst(samples: readonly Sample[], sinceMs: number): number {
  const index = samples.findIndex(({ timestampMs }) => timestampMs >= sinceMs)
  return index < 0 ? samples.length : index
}

function unavailable(cause: unknown) {
  return new CoordinatorError('entropy_unavailable', 'no fresh entropy sample can be had', { cause })
}

function shuttingDown() {
  return new CoordinatorError('shutting_down', 'the service is shutting down')
}
