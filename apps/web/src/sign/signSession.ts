import type { ServiceError, SignOffChainResult } from '@countersign/sdk'
import type { ShownContent } from '@countersign/verify'
import { createContext, useContext, useEffect } from 'react'
import { getSession, type Session } from '../wallet/session.ts'

export type SignStep =
  | { name: 'form' }
  | { name: 'confirm' | 'signing'; shown: ShownContent }
  | { name: 'signed'; shown: ShownContent; result: SignOffChainResult; isKept: boolean }

type SignState = { step: SignStep; failure: ServiceError | null }

export type SignSession = Session<SignState>

const INITIAL: SignState = { step: { name: 'form' }, failure: null }

/**
 * By address. Above the pages: the opening is answered once, so a visitor who leaves the page while the enclave signs, and comes
 * back, must find it.
 */
export const SignSessionsContext = createContext(new Map<string, SignSession>())

/** How far a wallet's signature is. */
export function useSignSession(address: string): SignSession {
  return getSession(useContext(SignSessionsContext), { address, initial: INITIAL })
}

/**
 * Nobody else has an opening: a tab that is closed, or that leaves to sign in, before it is kept leaves a proof that nobody can open.
 * For the whole app, because the visitor may have gone on to another page of it.
 */
export function useWarningBeforeLoss(sessions: ReadonlyMap<string, SignSession>): void {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if ([...sessions.values()].some((session) => isAtRisk(session.get().step))) event.preventDefault()
    }
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [sessions])
}

function isAtRisk(step: SignStep): boolean {
  return step.name === 'signing' || (step.name === 'signed' && !step.isKept)
}
