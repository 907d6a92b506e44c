import type { ServiceError, SignResult } from '@countersign/protocol'
import { createStore, type Store } from './createStore.ts'
import { toServiceError } from './errors.ts'

export type SignState<Result = SignResult> = { pending: boolean; error: ServiceError | null; lastResult: Result | null }

export type SignStore<Result = SignResult> = Store<SignState<Result>> & {
  /** Runs a signing and keeps its outcome, which it also gives or rejects with. */
  run(sign: () => Promise<Result>): Promise<Result>
}

/** What the signings of one place on the page have come to: `useSign` of specification §4, without React. */
export function createSignStore<Result = SignResult>(): SignStore<Result> {
  const store = createStore<SignState<Result>>({ pending: false, error: null, lastResult: null })
  let running = 0

  async function run(sign: () => Promise<Result>): Promise<Result> {
    running += 1
    store.set({ pending: true, error: null })
    try {
      const lastResult = await sign()
      running -= 1
      store.set({ pending: running > 0, lastResult })
      return lastResult
    } catch (thrown) {
      const error = toServiceError(thrown)
      running -= 1
      store.set({ pending: running > 0, error })
      throw error
    }
  }

  return {
    ...store,
    run,
  }
}
