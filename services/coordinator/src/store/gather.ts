import { CoordinatorError } from '../errors.ts'

/** What a batch reports while it runs. */
export type Progress<Request, Result> = {
  /** Frees the slot before the work is over: what follows runs beside the next batch. */
  onSent(): void
  /** The answer to one request; only the first counts. */
  answer(request: Request, result: PromiseSettledResult<Result>): void
}

/** Runs gathered requests. When it is over, each has been answered; if it throws, the remaining ones fail with that error. */
type RunBatch<Request, Result> = (requests: readonly Request[], progress: Progress<Request, Result>) => Promise<void>

export type Gatherer<Request, Result> = {
  /** Joins the next batch; an identical request that is under way shares its answer. */
  add(request: Request): Promise<Result>
  /** Refuses new requests with `stopped` and resolves when none is under way. */
  stop(stopped: Error): Promise<void>
}

export type GathererParameters<Request, Result> = {
  run: RunBatch<Request, Result>
  /** Requests with the same key are the same request. Without one, each is answered for itself. */
  keyOf?(request: Request): string | undefined
  /** Requests in one batch, at most. */
  limit: number
  /** What each counts, and how much one batch may hold: more only of a single request. */
  weight?: { of(request: Request): number; limit: number }
  /** Batches under way at one time. */
  slots: number | (() => number)
}

type Waiting<Request, Result> = {
  request: Request
  key: unknown
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit on the coordinator's side, without a timer: while a slot is free a request goes out with whatever else has come
 * in this turn of the event loop; while none is, requests gather.
 */
export function createGatherer<Request, Result>(
  parameters: GathererParameters<Request, Result>,
): Gatherer<Request, Result> {
  const { run, keyOf, limit, weight } = parameters
  const isFull = () => busy >= (typeof parameters.slots === 'number' ? parameters.slots : parameters.slots())
  const underWay = new Map<unknown, Promise<Result>>()
  const queue: Waiting<Request, Result>[] = []
  let busy = 0
  let isScheduled = false
  let stopped: Error | undefined

  function schedule() {
    if (isScheduled || queue.length === 0 || isFull()) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      while (queue.length > 0 && !isFull()) void send(queue.splice(0, countNext()))
    })
  }

  function countNext(): number {
    const most = Math.min(limit, queue.length)
    if (weight === undefined) return most
    let sum = 0
    for (let count = 0; count < most; count++) {
      sum += weight.of((queue[count] as Waiting<Request, Result>).request)
      if (sum > weight.limit) return Math.max(1, count)
    }
    return most
  }

  async function send(taken: Waiting<Request, Result>[]) {
    busy += 1
    let isFree = false
    const free = () => {
      if (isFree) return
      isFree = true
      busy -= 1
      schedule()
    }
    const waiting = new Map<Request, Waiting<Request, Result>>()
    for (const one of taken) waiting.set(one.request, one)
    const answer = (request: Request, result: PromiseSettledResult<Result>) => {
      const one = waiting.get(request)
      if (one === undefined) return
      waiting.delete(request)
      underWay.delete(one.key)
      if (result.status === 'fulfilled') one.resolve(result.value)
      else one.reject(result.reason)
    }
    const failRest = (reason: unknown) => {
      for (const request of waiting.keys()) answer(request, { status: 'rejected', reason })
    }
    try {
      await run([...waiting.keys()], { onSent: free, answer })
      if (waiting.size > 0) failRest(new Error('a request got no answer'))
    } catch (error) {
      failRest(error)
    } finally {
      free()
    }
  }

  return {
    add(request) {
      if (stopped !== undefined) return Promise.reject(stopped)
      const key = keyOf?.(request) ?? Symbol()
      const shared = underWay.get(key)
      if (shared !== undefined) return shared
      const answer = new Promise<Result>((resolve, reject) => queue.push({ request, key, resolve, reject }))
      underWay.set(key, answer)
      schedule()
      return answer
    },
    async stop(reason) {
      stopped = reason
      await Promise.allSettled(underWay.values())
    },
  }
}

const CALLS_LIMIT = 256

/**
 * One statement for many calls: those that come while it runs share the next. `run` answers in the order of its requests. Where it
 * refuses several together, each is tried alone, so that a bad one fails alone. A database that is unavailable is not asked again
 * at once; but as they may have been too much for it, the next statement has half as many, and each that succeeds allows twice as
 * many again.
 */
export function gatherCalls<Request extends object, Result>(
  run: (requests: readonly Request[]) => Promise<Result[]>,
  { limit = CALLS_LIMIT, weight }: Partial<Pick<GathererParameters<Request, Result>, 'limit' | 'weight'>> = {},
): (request: Request) => Promise<Result> {
  let most = limit

  async function runAlone(request: Request): Promise<Result> {
    const [result] = await run([request])
    return result as Result
  }
  async function runTogether(requests: readonly Request[]): Promise<PromiseSettledResult<Result>[]> {
    try {
      const results = await run(requests)
      most = Math.min(limit, 2 * most)
      return results.map((value) => ({ status: 'fulfilled', value }))
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'database_unavailable') {
        most = Math.ceil(requests.length / 2)
        throw error
      }
      if (requests.length === 1) return [{ status: 'rejected', reason: error }]
      return Promise.allSettled(requests.map(runAlone))
    }
  }

  const { add } = createGatherer<Request, Result>({
    limit,
    ...(weight && { weight }),
    slots: 1,
    async run(requests, { answer }) {
      for (let start = 0; start < requests.length; ) {
        const part = requests.slice(start, start + most)
        const settled = await runTogether(part)
        for (const [index, request] of part.entries()) answer(request, settled[index] as (typeof settled)[number])
        start += part.length
      }
    },
  })
  return add
}
