import { CoordinatorError } from '../errors.ts'
import { createGatherer, type GathererParameters } from './gather.ts'

const LIMIT = 256

/**
 * One statement for many calls: those that come while it runs share the next. `run` answers in the order of its requests. Where it
 * refuses several together, each is tried alone, so that a bad one fails alone. A database that is unavailable is not asked again
 * at once; but as they may have been too much for it, the next statement has half as many, and each that succeeds allows twice as
 * many again.
 */
export function gatherCalls<Request extends object, Result>(
  run: (requests: readonly Request[]) => Promise<Result[]>,
  { limit = LIMIT, weight }: Partial<Pick<GathererParameters<Request, Result>, 'limit' | 'weight'>> = {},
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
