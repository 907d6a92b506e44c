import { createContext, useContext, useEffect, useSyncExternalStore } from 'react'

/** State that outlives its page. */
export type Session<State> = {
  get(): State
  set(change: Partial<State>): void
  subscribe(listener: () => void): () => void
}

/** State per address. `isAtRisk` returns whether closing the tab now would lose something. */
export type SessionKind<State> = { initial: State; isAtRisk?: (state: State) => boolean }

export type Sessions = Map<SessionKind<never>, Map<string, Session<never>>>

/** Outside the pages, so that a returning visitor finds the current state. */
export const SessionsContext = createContext<Sessions>(new Map())

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

/** Returns an address's session and its current state. Creates it on first use. */
export function useSession<State>(kind: SessionKind<State>, address: string): [State, Session<State>] {
  const sessions = useContext(SessionsContext) as unknown as Map<SessionKind<State>, Map<string, Session<State>>>
  const ofKind = sessions.get(kind) ?? new Map<string, Session<State>>()
  sessions.set(kind, ofKind)
  const session = ofKind.get(address) ?? createSession(kind.initial)
  ofKind.set(address, session)
  return [useSyncExternalStore(session.subscribe, session.get), session]
}

/**
 * Makes the browser ask before it closes the tab or leaves to sign in, while something would be lost. Covers the whole app, because the
 * visitor may be on another page.
 */
export function useWarningBeforeLeaving(sessions: Sessions): void {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      for (const [{ isAtRisk }, ofKind] of sessions)
        if ([...ofKind.values()].some((session) => isAtRisk?.(session.get()))) event.preventDefault()
    }
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [sessions])
}
