import { createContext, useContext } from 'react'
import { getSession, type Session } from '../wallet/session.ts'
import { type IncomingState, NOTHING_LOOKED_AT } from './payment.ts'

export type IncomingSession = Session<IncomingState>

/** By address. Above the pages, so that a visitor who comes back does not have the node asked for the same blocks again. */
export const IncomingSessionsContext = createContext(new Map<string, IncomingSession>())

/** What is known of the payments to a wallet. */
export function useIncomingSession(address: string): IncomingSession {
  return getSession(useContext(IncomingSessionsContext), { address, initial: NOTHING_LOOKED_AT })
}
