import type { OpenBatch, SignedBatch } from '@countersign/protocol'

/** How long other endpoints are preferred after a failure. */
const RETURN_MS = 60_000
/** Calls in flight at one enclave that signs for no other coordinator. Further requests gather meanwhile. */
export const ENCLAVE_SLOTS = 8
/** How long a measured quote time counts. After that the endpoint gets a call again, in case it was slow only for a while. */
const MEASURED_MS = 10_000
const UNMEASURED_MS = 100
/** Smaller differences between quote times are ignored, so that the operator's order decides. */
const STEP_MS = 10
/** The most batches that may still be waiting for a release. */
const MAX_BATCHES = 4

type Batch = Pick<SignedBatch, 'bootId' | 'sequence' | 'leaves'>
/** `own` counts this coordinator's leaves. `from` is when the quote began; it is undefined if the answer came after the quote. */
type SeenBatch = { batch: Batch; own: number; from: number | undefined }

type Load = ReturnType<typeof createLoad>

const createLoad = () => ({
  /** Items in progress. */
  work: 0,
  failedAt: 0,
  /** Other endpoints are preferred until then. Undefined if the endpoint works. */
  avoidedUntil: undefined as number | undefined,
  /** When the current quote began, as seen by this coordinator. */
  quoteFrom: 0,
  quoteMs: 0,
  measuredAt: Number.NEGATIVE_INFINITY,
  /** Oldest first. */
  seen: [] as SeenBatch[],
  slots: ENCLAVE_SLOTS,
})

/**
 * Orders the endpoints of several enclaves by when a new item would have its quote. Equal numbers of items would not help: each enclave makes
 * one quote at a time, so each item would still wait for two. Remembers which endpoints failed. Endpoints are named by their index.
 */
export function createEndpointLoads(count: number) {
  const loads = Array.from({ length: count }, createLoad)
  const of = (index: number) => loads[index] as Load
  const now = () => performance.now()
  const isAvoided = ({ avoidedUntil = 0 }: Load) => now() < avoidedUntil

  function avoid(index: number, ms = RETURN_MS) {
    const load = of(index)
    load.failedAt = now()
    load.avoidedUntil = load.failedAt + ms
  }

  function measure(load: Load, ms: number) {
    load.quoteMs = isMeasured(load) ? load.quoteMs + (ms - load.quoteMs) / 4 : ms
    load.measuredAt = now()
  }

  const isMeasured = ({ measuredAt }: Load) => now() - measuredAt < MEASURED_MS
  /** Without a recent measurement, assume that the endpoint is as fast as the fastest one. */
  function readQuoteMs(load: Load): number {
    if (isMeasured(load)) return load.quoteMs
    return Math.min(UNMEASURED_MS, ...loads.filter(isMeasured).map(({ quoteMs }) => quoteMs))
  }

  /** The time left of the current quote. If it is overdue, assume another full quote time. */
  function readLeftMs(load: Load): number {
    const leftMs = load.quoteFrom + readQuoteMs(load) - now()
    // With a log, calls are answered when their quotes begin.
    const isQuoting = load.seen.at(-1)?.from !== undefined && leftMs > 0
    return load.work > 0 || isQuoting ? Math.abs(leftMs) : 0
  }

  return {
    avoid,
    /** Returns the best endpoint first. Endpoints that failed recently come last. Ties keep the operator's order. */
    order(): number[] {
      const order = loads
        .map((load, index) => {
          const steps = Math.round((readLeftMs(load) + readQuoteMs(load)) / STEP_MS)
          return { index, isAvoided: Number(isAvoided(load)), steps, work: load.work }
        })
        .sort((left, right) => left.isAvoided - right.isAvoided || left.steps - right.steps || left.work - right.work)
        .map(({ index }) => index)
      // Only one call tries a failed endpoint. The others wait for its outcome.
      const [first] = order
      if (first !== undefined && of(first).avoidedUntil !== undefined) avoid(first)
      return order
    },
    /** Counts the items of a call while it runs. A success clears the endpoint's failure if the call began after that failure. */
    async run<Result>(index: number, items: number, call: (beganAt: number) => Promise<Result>): Promise<Result> {
      const load = of(index)
      const beganAt = now()
      if (items > 0 && readLeftMs(load) === 0) load.quoteFrom = beganAt
      load.work += items
      try {
        const result = await call(beganAt)
        if (beganAt >= load.failedAt) load.avoidedUntil = undefined
        return result
      } finally {
        load.work -= items
      }
    },
    /** Reads from a `sign` answer how many leaves are this coordinator's, and when the quote ended or, with a log, began. */
    observe(
      index: number,
      beganAt: number,
      answer: { batches: readonly (OpenBatch | SignedBatch)[]; results: readonly object[] },
    ) {
      const load = of(index)
      for (const [place, batch] of answer.batches.entries()) {
        const own = answer.results.filter((result) => 'batch' in result && result.batch === place).length
        const last = load.seen.at(-1)
        if (last?.batch.bootId === batch.bootId && last.batch.sequence === batch.sequence) {
          last.own += own
          continue
        }
        if (last !== undefined) load.slots = toSlots(last)
        const isOpen = !('quote' in batch)
        if (!isOpen) measure(load, now() - Math.max(beganAt, load.quoteFrom))
        load.quoteFrom = now()
        load.seen = [...load.seen, { batch, own, from: isOpen ? load.quoteFrom : undefined }].slice(-MAX_BATCHES)
      }
    },
    /** With a log, statements are released when their quote has ended. */
    observeRelease(index: number, [leaf = '']: readonly string[] = []) {
      const load = of(index)
      const released = load.seen.find(({ batch, from }) => from !== undefined && batch.leaves.includes(leaf))
      if (released?.from !== undefined) measure(load, now() - released.from)
    },
    /** How many calls may be in flight at all working endpoints together. */
    countSlots(): number {
      const working = loads.filter(({ avoidedUntil }) => avoidedUntil === undefined)
      return working.reduce((sum, { slots }) => sum + slots, 0) || ENCLAVE_SLOTS
    },
  }
}

/**
 * Coordinators share the calls in proportion to their leaves, so that several make batches as large as one would. Each has at least two
 * calls: one in the current quote and one waiting for the next.
 */
function toSlots({ own, batch }: SeenBatch): number {
  return Math.min(ENCLAVE_SLOTS, Math.max(2, Math.round((ENCLAVE_SLOTS * own) / batch.leaves.length)))
}
