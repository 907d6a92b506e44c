import { EnclaveError } from './errors.ts'

/** Runs calls one at a time, lets a few wait, and rejects the rest, because anyone who can reach the enclave can make such calls. */
export function createCallQueue(maxWaiting: number): <Result>(run: () => Promise<Result>) => Promise<Result> {
  let waiting = 0
  let last: Promise<unknown> = Promise.resolve()
  return async (run) => {
    if (waiting >= maxWaiting) throw new EnclaveError('quote_unavailable', 'too many such calls are under way')
    waiting += 1
    try {
      const mine = last.then(run)
      last = mine.catch(() => undefined)
      return await mine
    } finally {
      waiting -= 1
    }
  }
}
