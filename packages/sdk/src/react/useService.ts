'use client'

import type { ServiceError, SessionUser, WalletInfo } from '@countersign/protocol'
import {
  createContext,
  createElement,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useSyncExternalStore,
} from 'react'
import type { ServiceClientConfig } from '../client/connection.ts'
import type { Store } from '../client/createStore.ts'
import { type LoginOptions, ServiceClient } from '../client/ServiceClient.ts'
import { createServiceStore, type ServiceStore } from '../client/serviceStore.ts'

type Service = { client: ServiceClient; store: ServiceStore }

const ServiceContext = createContext<Service | null>(null)

export type ServiceProviderProps = {
  /** A change of `apiBaseUrl` or `chainId` makes a new client, a change of `rpcUrl` alone does not. */
  config: ServiceClientConfig
  children?: ReactNode
}

/**
 * Gives the hooks below it a client, and finds out once who is signed in. A user without a wallet gets one.
 *
 * @example
 * <ServiceProvider config={{ apiBaseUrl: 'https://api.example.com', chainId: 11155111 }}>…</ServiceProvider>
 */
export function ServiceProvider({ config, children }: ServiceProviderProps) {
  const { apiBaseUrl, chainId } = config
  // biome-ignore lint/correctness/useExhaustiveDependencies: specification §4 memoises on these two only
  const service = useMemo(() => {
    const client = new ServiceClient(config)
    return { client, store: createServiceStore(client) }
  }, [apiBaseUrl, chainId])
  useEffect(() => service.store.start(), [service])
  // One element is no reason to bring the JSX runtime along.
  return createElement(ServiceContext, { value: service }, children)
}

/** The client and the store of the provider above; hooks that show no state of the user need no more. */
export function useServiceContext(): Service {
  const service = useContext(ServiceContext)
  if (service === null) throw new Error('useService must be used inside <ServiceProvider>')
  return service
}

export function useStore<State>({ subscribe, getSnapshot, getServerSnapshot }: Store<State>): State {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot)
}

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

/** `useService().login` can name a provider. */
export type UseWalletReturnType = Pick<
  Omit<ServiceContextValue, 'login'> & { login: () => void },
  'user' | 'wallet' | 'ready' | 'login' | 'logout' | 'refresh'
>

/**
 * The user, the wallet, and how to sign in and out.
 *
 * @example
 * const { user, wallet, ready, login } = useWallet()
 */
export function useWallet(): UseWalletReturnType {
  const { client: _client, error: _error, ...value } = useService()
  return value
}
