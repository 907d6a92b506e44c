import { type ProofStatus, type ServiceError, useService } from '@countersign/sdk'
import { useCallback, useEffect, useRef, useState } from 'react'
import { toServiceError } from '../words/explainError.ts'
import { type Known, withNewest, withOlder, withStatus } from './pages.ts'

export type History = {
  /** Null until the first page has loaded. */
  known: Known | null
  isLoading: boolean
  error: ServiceError | null
  /** Reloads the newest page. */
  reload: () => Promise<void>
  loadOlder: () => Promise<void>
  /** Updates a status that another component received. */
  noteStatus: (slug: string, status: ProofStatus) => void
}

const PAGE_SIZE = 10

/** Loads the user's signatures page by page. */
export function useHistory({ address, onSessionLost }: { address: string; onSessionLost: () => void }): History {
  const { client } = useService()
  const [state, setState] = useState<Pick<History, 'known' | 'isLoading' | 'error'>>({
    known: null,
    isLoading: true,
    error: null,
  })
  const latest = useRef(0)

  const load = useCallback(
    async (cursor: string | null) => {
      latest.current += 1
      const turn = latest.current
      setState((before) => ({ ...before, isLoading: true }))
      try {
        const [page, wallet] = await Promise.all([
          client.api.listTransactions({ limit: PAGE_SIZE, ...(cursor === null ? {} : { cursor }) }),
          client.api.getWallet(),
        ])
        if (turn !== latest.current) return
        // If a different user signed in from another tab, their history must not appear under this wallet.
        if (wallet?.address.toLowerCase() !== address.toLowerCase()) return onSessionLost()
        setState(({ known }) => ({
          known: cursor === null || known === null ? withNewest(known, page) : withOlder(known, page),
          isLoading: false,
          error: null,
        }))
      } catch (caught) {
        if (turn !== latest.current) return
        const error = toServiceError(caught)
        if (error.status === 401) onSessionLost()
        setState((before) => ({ ...before, isLoading: false, error }))
      }
    },
    [client, address, onSessionLost],
  )

  const reload = useCallback(() => load(null), [load])
  const nextCursor = state.known?.nextCursor ?? null
  const loadOlder = useCallback(() => load(nextCursor), [load, nextCursor])

  const noteStatus = useCallback((slug: string, status: ProofStatus) => {
    setState((before) => ({ ...before, known: before.known && withStatus(before.known, { slug, status }) }))
  }, [])

  useEffect(() => {
    void reload()
    return () => {
      latest.current += 1
    }
  }, [reload])

  return { ...state, reload, loadOlder, noteStatus }
}
