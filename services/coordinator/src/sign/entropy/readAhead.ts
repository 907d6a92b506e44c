import type { AnyWitness } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { CoordinatorError } from '../../errors.ts'
import { createSampleBuffer } from './sampleBuffer.ts'
import { type BuyerStats, createSampleBuyer, type SampleBuyerParameters } from './sampleBuyer.ts'

/** Provides one unused sample per signature, or one beacon round for all. Throws `entropy_unavailable`. */
export type Entropy = {
  /**
   * Returns `count` samples, or fewer if there are no more; at least one unless `count` is 0. Doesn't verify their signatures, because the
   * enclave does before it signs.
   */
  take(count: number): Promise<AnyWitness[]>
  /** The same with verified signatures: for callers without an enclave, and for retries. */
  takeVerified(count: number): Promise<AnyWitness[]>
  /** Counts samples that the enclave rejected. Absent for a beacon, whose next round stays the same for a while. */
  refuse?(samples: readonly AnyWitness[]): void
  /** Absent for a beacon, which is not bought or consumed. */
  stats?(): EntropyStats
  stop(): Promise<void>
}

/** Where samples ended up. Each received sample is counted once. */
export type EntropyStats = BuyerStats & {
  /** Ready for use. */
  buffered: number
  handedOut: number
  /** Claimed, but expired before use or beyond the buffer's capacity. */
  unused: number
}

export type ReadAhead = Entropy & { stats(): EntropyStats }

export type ReadAheadParameters = Omit<SampleBuyerParameters, 'maxAgeMs' | 'allowUnsigned'> & {
  /** Older samples are never returned. */
  maxAgeMs?: number
  /** Samples to store in addition to those that callers wait for. */
  capacity?: number
  allowUnsigned?: boolean
  /** The longest wait of one `take`. */
  waitMs?: number
  /** The pause after a request without new samples, doubled each time. */
  retryMs?: number
}

type Waiter = { count: number; resolve(witnesses: Witness[]): void; reject(error: unknown): void }

/** The state of purchases, which run one at a time. */
type State =
  /** No caller is waiting, and enough samples are in stock. */
  | { kind: 'idle' }
  | { kind: 'buying'; over: Promise<void> }
  /** The last purchase brought no new samples. The source gets time to recover. */
  | { kind: 'pausing'; cancel(): void }
  | { kind: 'stopped' }

/** Younger samples count as stock. Older ones are a reserve for when no fresh ones are left. */
const FRESH_MS = 5_000
const MAX_SAMPLES = 256
const MAX_REQUESTS = 4
/** Consecutive requests without new, genuine samples before waiting callers fail. */
const MAX_FRUITLESS = 5
/**
 * A single lost connection or late answer fails no caller. A second one within this time fails the waiting callers, so a source that is down
 * doesn't block them.
 */
const FAILING_MS = 10_000
/** The share of the fresh time to buy ahead for. Demand may drop to a fifth before a sample expires unused. */
const HORIZON = 1 / 5

/**
 * Keeps checked, claimed samples in stock, so that no request waits for the source. The stock follows recent demand, and only `take` starts a
 * purchase: an idle service fetches no samples and runs no timer.
 *
 * If the source fails twice in a row, returns no usable samples or is too slow, `take` returns fewer samples, or throws `entropy_unavailable`
 * if there are none. If the store fails to claim samples or is too slow, `take` throws the store's error: the service can't sign without the
 * store. A failure affects only callers that wait; the next `take` tries again.
 */
export function createReadAhead(parameters: ReadAheadParameters): ReadAhead {
  const { clock } = parameters
  const { maxAgeMs = 60_000, capacity = 1_024, allowUnsigned = false } = parameters
  const { waitMs = 5_000, retryMs = 100 } = parameters
  const buyer = createSampleBuyer({ ...parameters, maxAgeMs, allowUnsigned })
  const buffer = createSampleBuffer({ clock, maxAgeMs, freshMs: FRESH_MS, capacity })
  const horizonMs = FRESH_MS * HORIZON

  const waiters: Waiter[] = []
  let state: State = { kind: 'idle' }
  /** Whether `take` was called since the last purchase began. Only callers start a purchase. */
  let isCalled = false
  /** Consecutive purchases without new samples. */
  let fruitless = 0
  let handedOut = 0
  /** When a request last failed; reset when one brings samples. */
  let failedAt = Number.NEGATIVE_INFINITY
  /** The store's last failure to claim samples, until a claim succeeds. */
  let claimFailure: { error: CoordinatorError; at: number } | undefined
  /** Samples taken recently, with exponential decay. At a steady rate this is the demand of one horizon. */
  let demand = { amount: 0, at: Number.NEGATIVE_INFINITY }

  function getDemand(): number {
    // If the clock was set back, don't decay.
    return demand.amount * Math.exp(-Math.max(0, clock.now() - demand.at) / horizonMs)
  }

  function getTarget(): number {
    // Rounds to zero once the last caller's demand has decayed below a half.
    return Math.min(capacity, Math.round(getDemand()))
  }

  function countNeed(): number {
    return waiters.reduce((sum, { count }) => sum + count, 0)
  }

  /** Serves callers in order, so that small requests can't starve a large one. */
  function serve() {
    buffer.dropUnusable()
    while (waiters[0] && waiters[0].count <= buffer.size) {
      const waiter = waiters.shift()
      if (waiter === undefined) return
      hand(waiter, waiter.count)
    }
  }

  function hand(waiter: Waiter, count: number) {
    handedOut += count
    waiter.resolve(buffer.take(count))
  }

  /** No more samples are available. The waiters get the remaining samples; they fail if there are none, or if the store failed. */
  function fail(failed: readonly Waiter[], cause: unknown) {
    const error = cause instanceof CoordinatorError ? cause : findClaimFailure()
    for (const waiter of failed) {
      const index = waiters.indexOf(waiter)
      if (index < 0) continue
      waiters.splice(index, 1)
      buffer.dropUnusable()
      const count = Math.min(waiter.count, buffer.size)
      if (error === undefined && count > 0) hand(waiter, count)
      else waiter.reject(error ?? unavailable(cause))
    }
  }

  /** Returns the store's error if the store caused the wait: it failed recently, or has left a claim unanswered for most of the time. */
  function findClaimFailure(): CoordinatorError | undefined {
    const now = clock.now()
    if (claimFailure !== undefined && now - claimFailure.at <= FAILING_MS) return claimFailure.error
    const since = buyer.claimingSince()
    if (since === undefined || now - since < waitMs / 2) return undefined
    return new CoordinatorError('database_unavailable', 'the database does not answer')
  }

  /** Refill at half of the target, to avoid one request to the source per signature. */
  function isRefillDue(): boolean {
    return buffer.countFresh() < getTarget() / 2
  }

  /** Starts buying from `idle` if a caller waits or the stock is too low. */
  function proceed() {
    if (state.kind !== 'idle') return
    if (waiters.length > 0 || (isCalled && isRefillDue())) state = { kind: 'buying', over: buy() }
    else fruitless = 0
  }

  /** Runs one purchase, then changes the state by its outcome. */
  async function buy() {
    // Calls in the same turn share the first request.
    await Promise.resolve()
    isCalled = false
    const waiting = [...waiters]
    const { admitted, error } = await refill()
    if (isStopped()) return
    serve()
    state = { kind: 'idle' }
    if (admitted > 0) {
      fruitless = 0
      failedAt = Number.NEGATIVE_INFINITY
    } else if (error !== undefined) {
      const isFailing = clock.now() - failedAt <= FAILING_MS
      failedAt = clock.now()
      if (isFailing) fail(waiting, error)
      else if (waiters.length > 0) return pause(retryMs)
    } else if (waiters.length > 0) {
      fruitless += 1
      if (fruitless < MAX_FRUITLESS) return pause(retryMs * 2 ** (fruitless - 1))
      fail(waiting, undefined)
      fruitless = 0
    }
    proceed()
  }

  /** Goes from `idle` to `pausing`, and back after `durationMs`. */
  function pause(durationMs: number) {
    const timer = setTimeout(() => {
      state = { kind: 'idle' }
      proceed()
    }, durationMs)
    state = { kind: 'pausing', cancel: () => clearTimeout(timer) }
  }

  const isStopped = () => state.kind === 'stopped'

  /** Buys the missing samples, at most `capacity` more than callers wait for, in parallel requests of up to 256. */
  async function refill(): Promise<{ admitted: number; error: unknown }> {
    const need = countNeed()
    const missing = getTarget() + (need > 0 ? need - buffer.size : -buffer.countFresh())
    const requests: Promise<number>[] = []
    for (let left = Math.max(1, missing); left > 0 && requests.length < MAX_REQUESTS; left -= MAX_SAMPLES) {
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

  /** One request from the source into the buffer. Returns the number of new samples. */
  async function request(count: number): Promise<number> {
    const samples = await buyer.buy(count).catch((error) => {
      if (error instanceof CoordinatorError) claimFailure = { error, at: clock.now() }
      throw error
    })
    if (samples.length > 0) claimFailure = undefined
    buffer.add(samples, { reserved: countNeed() })
    serve()
    return samples.length
  }

  function wait(count: number): Promise<Witness[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Witness[]>()
    const waiter = { count, resolve, reject }
    waiters.push(waiter)
    const timer = setTimeout(() => fail([waiter], undefined), waitMs)
    return promise.finally(() => clearTimeout(timer))
  }

  async function take(count: number): Promise<Witness[]> {
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError('count must be a natural number')
    if (isStopped()) throw shuttingDown()
    if (count === 0) return []
    demand = { amount: getDemand() + count, at: clock.now() }
    isCalled = true
    const taken = wait(count)
    serve()
    proceed()
    return taken
  }

  function refuse(samples: readonly AnyWitness[]) {
    handedOut -= samples.length
    buyer.refuse(samples)
  }

  return {
    take,
    async takeVerified(count) {
      const verified: Witness[] = []
      for (let tries = 0; tries < MAX_FRUITLESS && verified.length < count; tries++) {
        const taken = await take(count - verified.length)
        const forged = taken.filter((sample) => !buyer.isGenuine(sample))
        verified.push(...taken.filter((sample) => !forged.includes(sample)))
        refuse(forged)
        // After one forged sample the buffered ones are suspect. Forged ones are removed now, so that later calls don't fail because of them.
        if (forged.length > 0) buyer.refuse(buffer.removeBad(buyer.isGenuine))
      }
      if (verified.length === 0 && count > 0) throw unavailable(undefined)
      return verified
    },
    refuse,
    async stop() {
      const before = state
      state = { kind: 'stopped' }
      if (before.kind === 'pausing') before.cancel()
      buffer.clear()
      fail([...waiters], shuttingDown())
      buyer.stop(shuttingDown())
      // A claim in progress still uses the store.
      if (before.kind === 'buying') await before.over
      buffer.clear()
    },
    stats: () => ({ buffered: buffer.size, handedOut, unused: buffer.unused, ...buyer.stats() }),
  }
}

function unavailable(cause: unknown) {
  return new CoordinatorError('entropy_unavailable', 'no fresh entropy sample is available', { cause })
}

function shuttingDown() {
  return new CoordinatorError('shutting_down', 'the service is shutting down')
}
