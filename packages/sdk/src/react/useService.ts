'use client'

import type { ServiceError, SessionUser, WalletInfo } from '@countersign/protocol'
import { useMemo } from 'react'
import type { LoginOptions, ServiceClient } from '../client/ServiceClient.ts'
import { useServiceContext, useStore } from './ServiceContext.ts'

/** What `useService` returns. It may grow; the named hooks are the stable contracts. */
export type ServiceContextValue = {
  client: ServiceClient
  user: SessionUser | null
  wallet: WalletInfo | null
  /** True once the first fetch cycle has settled, whatever its outcome. */
  ready: boolean
  /** Why the last cycle could not find out who is signed in, or has no wallet for them. Being signed out is no error. */
  error: ServiceError | null
  /** Runs the fetch cycle again; never rejects. */
  refresh: () => Promise<void>
  /** Leaves the page to sign in at a provider from `GET /auth`, by default the first. Works as a click handler too. */
  login: { (): void; (options: LoginOptions): void }
  /** Ends the session. User and wallet are cleared even if the request fails; it rejects then. */
  logout: () => Promise<void>
}

/**
 * Everything that the provider knows.
 *
 * @example
 * const { client, error } = useService()
 */
export function useService(): ServiceContextValue {
  const { client, store } = useServiceContext()
  const state = useStore(store)
  return useMemo(
    () => ({ client, ...state, refresh: store.refresh, login: store.login, logout: store.logout }),
    [client, store, state],
  )
}
