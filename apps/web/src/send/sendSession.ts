import type { ServiceError, SignResult } from '@countersign/sdk'
import { createContext, useContext } from 'react'
import type { PendingPayment } from '../vaults/pendingPayment.ts'
import { getSession, type Session } from '../wallet/session.ts'
import type { Draft } from './prepareDraft.ts'
import type { ShownPayment } from './tellDraft.ts'

/** A wallet confirms a draft; a vault's payment may have to wait for approvals. */
export type Step =
  | { name: 'form' | 'checking' | 'signing' }
  | { name: 'confirm'; draft: Draft }
  | { name: 'pending'; pending: PendingPayment }
  | { name: 'sent'; draft: ShownPayment; result: SignResult }

type SendState = {
  step: Step
  failure: ServiceError | null
  /** Signed, and nobody knows whether it was sent: the next payment could be a second one. */
  unsettled: SignResult | null
  /** Whether the browser has it: then it counts for as long as it is there, since another tab may take it away. */
  isKept: boolean
}

export type SendSession = Session<SendState>

const INITIAL: SendState = { step: { name: 'form' }, failure: null, unsettled: null, isKept: false }

/** By address. Above the pages, so that a visitor who leaves one while the enclave signs, and comes back, finds the result. */
export const SendSessionsContext = createContext(new Map<string, SendSession>())

/** How far the payment of a wallet or a vault is. */
export function useSendSession(address: string): SendSession {
  return getSession(useContext(SendSessionsContext), { address, initial: INITIAL })
}

/** A tab that ends between signature and broadcast leaves a public signature behind, and nothing sent. */
export function isSending({ step }: SendState): boolean {
  return step.name === 'signing'
}
