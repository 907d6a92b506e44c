import { createContext, useContext, useEffect, useSyncExternalStore } from 'react'

/** State that outlives the page which shows it. */
export type Session<State> = {
  get(): State
  set(change: Partial<State>): void
  subscribe(listener: () => void): () => void
}

/** What is kept for each address; `isAtRisk` says whether something would be lost if the tab ended now. */
export type SessionKind<State> = { initial: State; isAtRisk?: (state: State) => boolean }

/** By kind and address. */
export type Sessions = Map<SessionKind<never>, Map<string, Session<never>>>

/** Above the pages, so that a visitor who leaves one and comes back finds what has happened meanwhile. */
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

/** The session of an address, created at first use, and its state now. */
export function useSession<State>(kind: SessionKind<State>, address: string): [State, Session<State>] {
  const sessions = useContext(SessionsContext) as unknown as Map<SessionKind<State>, Map<string, Session<State>>>
  const ofKind = sessions.get(kind) ?? new Map<string, Session<State>>()
  sessions.set(kind, ofKind)
  const session = ofKind.get(address) ?? createSession(kind.initial)
  ofKind.set(address, session)
  return [useSyncExternalStore(session.subscribe, session.get), session]
}

/**
 * The browser asks before the tab is closed, or leaves to sign in, while something would be lost. For the whole app, because the
 * visitor may have gone on to another page of it.
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
