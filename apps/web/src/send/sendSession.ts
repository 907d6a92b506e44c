import type { ServiceError, SignResult } from '@countersign/sdk'
import { createContext, useContext } from 'react'
import type { Draft } from './prepareDraft.ts'

export type Step =
  | { name: 'form' | 'checking' }
  | { name: 'confirm' | 'signing'; draft: Draft }
  | { name: 'sent'; draft: Draft; result: SignResult }

type SendState = {
  step: Step
  failure: ServiceError | null
  /** Signed, and nobody knows whether it was sent: the next payment could be a second one. */
  unsettled: SignResult | null
}

export type SendSession = {
  get(): SendState
  set(change: Partial<SendState>): void
  subscribe(listener: () => void): () => void
}

const INITIAL: SendState = { step: { name: 'form' }, failure: null, unsettled: null }

/** By address. Above the pages, so that a visitor who leaves one while the enclave signs, and comes back, finds the result. */
export const SendSessionsContext = createContext(new Map<string, SendSession>())

/** How far a wallet's payment is. */
export function useSendSession(address: string): SendSession {
  const sessions = useContext(SendSessionsContext)
  const known = sessions.get(address)
  if (known) return known
  const session = createSendSession()
  sessions.set(address, session)
  return session
}

function createSendSession(): SendSession {
  let state = INITIAL
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
