import type { ServiceError, SignOffChainResult } from '@countersign/sdk'
import type { ShownContent } from '@countersign/verify'
import { createContext, useContext } from 'react'
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

/** Nobody else has an opening: a tab that ends before it is kept leaves a proof that nobody can open. */
export function isUnkept({ step }: SignState): boolean {
  return step.name === 'signing' || (step.name === 'signed' && !step.isKept)
}
