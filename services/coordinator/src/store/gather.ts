import { CoordinatorError } from '../errors.ts'

/** How a batch reports its progress. */
export type Progress<Request, Result> = {
  /** Frees the slot early. The rest of the work runs in parallel with the next batch. */
  onSent(): void
  /** Answers one request. Only the first answer counts. */
  answer(request: Request, result: PromiseSettledResult<Result>): void
}

/** Runs gathered requests. It must answer each of them; if it throws, the remaining ones fail with that error. */
type RunBatch<Request, Result> = (requests: readonly Request[], progress: Progress<Request, Result>) => Promise<void>

export type Gatherer<Request, Result> = {
  /** Joins the next batch. An identical pending request shares its answer. */
  add(request: Request): Promise<Result>
  /** Rejects new requests with `stopped`. Resolves when none is pending. */
  stop(stopped: Error): Promise<void>
}

export type GathererParameters<Request, Result> = {
  run: RunBatch<Request, Result>
  /** Requests with the same key share one answer. Undefined: each gets its own. */
  keyOf?(request: Request): string | undefined
  /** The most requests in one batch. */
  limit: number
  /** The weight of a request, and the limit of a batch. A single request may exceed it. */
  weight?: { of(request: Request): number; limit: number }
  /** The most batches in progress. */
  slots: number | (() => number)
}

type Waiting<Request, Result> = {
  request: Request
  key: unknown
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit without a timer: if a slot is free, a request starts together with all others from this turn of the event loop. Otherwise
 * requests gather until a slot is free.
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
 * Combines concurrent calls: calls that arrive while one statement runs share the next. `run` returns results in the order of its requests.
 * If a combined statement fails, each request is retried by itself, so that only the bad one fails. If the database is unavailable, there is
 * no immediate retry; the next statement has half as many requests, and each success doubles the number again.
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
