import { type Hex, useService } from '@countersign/sdk'
import { useCallback } from 'react'
import { useTokens } from '../config.ts'
import { useWhileVisible } from '../ui/useWhileVisible.ts'
import { type SessionKind, useSession } from '../wallet/session.ts'
import { type IncomingState, NOTHING_SEARCHED } from './payment.ts'

export type IncomingPayments = IncomingState & {
  /** Searches now. */
  search: () => void
  /** Queries the node again after it rejected a query. */
  retry: () => void
}

/** Outlives the page, so that a returning visitor doesn't repeat the search. */
const INCOMING: SessionKind<IncomingState> = { initial: NOTHING_SEARCHED }
const INTERVAL_MS = 30_000

/** Searches for payments to the wallet while the page is visible. Calls `onFound` for new payments. */
export function useIncoming({ address, onFound }: { address: Hex; onFound: () => void }): IncomingPayments {
  const { client } = useService()
  const tokens = useTokens()
  const [state, session] = useSession(INCOMING, address)
  const run = useCallback(
    async (signal: AbortSignal) => {
      // Loaded later, because the page doesn't need it to render.
      const { findPayments } = await import('./findPayments.ts')
      const known = session.get()
      const found = await findPayments(client.publicClient, { address, tokens, known, signal })
      session.set(found)
      const seen = new Set(known.payments.map(({ key }) => key))
      if (known.ether !== null && found.payments.some(({ key }) => !seen.has(key))) onFound()
    },
    [client, session, address, tokens, onFound],
  )
  const search = useWhileVisible(run, INTERVAL_MS)
  const retry = useCallback(() => {
    session.set({ ether: null, tokens: null })
    search()
  }, [session, search])
  return { ...state, search, retry }
}
