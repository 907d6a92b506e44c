import { CoordinatorError } from '../errors.ts'
import { createGatherer } from '../sign/gather.ts'

/** More makes a statement of megabytes. */
const LIMIT = 256

/**
 * One statement for many calls: those that come while it runs share the next. `run` answers in the order of its requests. Where it
 * refuses several together, each is tried alone, so that a bad one fails alone.
 */
export function gatherCalls<Request extends object, Result>(
  run: (requests: readonly Request[]) => Promise<Result[]>,
): (request: Request) => Promise<Result> {
  async function runAlone(request: Request): Promise<Result> {
    const [result] = await run([request])
    return result as Result
  }
  const { add } = createGatherer<Request, Result>({
    limit: LIMIT,
    slots: 1,
    async run(requests, { answer }) {
      try {
        const results = await run(requests)
        for (const [index, request] of requests.entries()) {
          answer(request, { status: 'fulfilled', value: results[index] as Result })
        }
      } catch (error) {
        const isUnavailable = error instanceof CoordinatorError && error.code === 'database_unavailable'
        if (isUnavailable || requests.length === 1) throw error
        const settled = await Promise.allSettled(requests.map(runAlone))
        for (const [index, request] of requests.entries()) answer(request, settled[index] as (typeof settled)[number])
      }
    },
  })
  return add
}
