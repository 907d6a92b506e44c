import { useEffect } from 'react'
import type { Session } from '../wallet/session.ts'

/**
 * The browser asks before the tab is closed, or leaves to sign in, while something would be lost. For the whole app, because the
 * visitor may have gone on to another page of it.
 */
export function useWarningBeforeLeaving<State>(
  sessions: ReadonlyMap<string, Session<State>>,
  isAtRisk: (state: State) => boolean,
): void {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if ([...sessions.values()].some((session) => isAtRisk(session.get()))) event.preventDefault()
    }
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [sessions, isAtRisk])
}
