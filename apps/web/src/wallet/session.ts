/** State that outlives the page which shows it. */
export type Session<State> = {
  get(): State
  set(change: Partial<State>): void
  subscribe(listener: () => void): () => void
}

function createSession<State>(initial: State): Session<State> {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    set(change) {
      state = { ...state, ...change }
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** The session of an address, made at first use. */
export function getSession<State>(
  sessions: Map<string, Session<State>>,
  { address, initial }: { address: string; initial: State },
): Session<State> {
  const known = sessions.get(address)
  if (known) return known
  const session = createSession(initial)
  sessions.set(address, session)
  return session
}
