/** A value that others can watch: the half of `useSyncExternalStore` that needs no React. */
export type Store<State> = {
  getSnapshot(): State
  /** What a server renders, and the browser first: the same object always. */
  getServerSnapshot(): State
  subscribe(listener: () => void): () => void
}

export type WritableStore<State> = Store<State> & { set(change: Partial<State>): void }

export function createStore<State extends object>(initial: State): WritableStore<State> {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    getSnapshot: () => state,
    getServerSnapshot: () => initial,
    subscribe(listener) {
      // A function of its own, so that the same listener given twice is two.
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
