import type { ServiceError, SignResult } from '@countersign/sdk'
import { createContext, useContext } from 'react'
import { getSession, type Session } from '../wallet/session.ts'
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

export type SendSession = Session<SendState>

const INITIAL: SendState = { step: { name: 'form' }, failure: null, unsettled: null }

/** By address. Above the pages, so that a visitor who leaves one while the enclave signs, and comes back, finds the result. */
export const SendSessionsContext = createContext(new Map<string, SendSession>())

/** How far a wallet's payment is. */
export function useSendSession(address: string): SendSession {
  return getSession(useContext(SendSessionsContext), { address, initial: INITIAL })
}
