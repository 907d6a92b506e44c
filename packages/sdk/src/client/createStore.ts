import type { ServiceError, SignResult } from '@countersign/protocol'
import { toServiceError } from './errors.ts'

/** An observable value for `useSyncExternalStore`, without React. */
export type Store<State> = {
  getSnapshot(): State
  /** The state of the server's render and the browser's first render: always the same object. */
  getServerSnapshot(): State
  subscribe(listener: () => void): () => void
}

type WritableStore<State> = Store<State> & { set(change: Partial<State>): void }

export function createStore<State extends object>(initial: State): WritableStore<State> {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    getSnapshot: () => state,
    getServerSnapshot: () => initial,
    subscribe(listener) {
      // A new function, so that the same listener can subscribe twice.
      const entry = () => listener()
      listeners.add(entry)
      return () => listeners.delete(entry)
    },
    set(change) {
      state = { ...state, ...change }
      for (const listener of [...listeners]) listener()
    },
  }
}

export type SignState<Result = SignResult> = { pending: boolean; error: ServiceError | null; lastResult: Result | null }

type SignStore<Result = SignResult> = Store<SignState<Result>> & {
  /** Runs `sign`, stores its outcome, and resolves or rejects with it. */
  run(sign: () => Promise<Result>): Promise<Result>
}

/** The state of `useSign` of specification §4, without React. */
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
