import { EnclaveError } from './errors.ts'

/** Lets calls in one at a time, a few of them waiting, and refuses the rest: whoever can reach the enclave can make them. */
export function createTurns(maxWaiting: number): <Result>(take: () => Promise<Result>) => Promise<Result> {
  let waiting = 0
  let last: Promise<unknown> = Promise.resolve()
  return async (take) => {
    if (waiting >= maxWaiting) throw new EnclaveError('quote_unavailable', 'too many such calls are under way')
    waiting += 1
    try {
      const mine = last.then(take)
      last = mine.catch(() => undefined)
      return await mine
    } finally {
      waiting -= 1
    }
  }
}
