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
  /** A change of `apiBaseUrl` or `chainId` creates a new client. A change of only `rpcUrl` doesn't. */
  config: ServiceClientConfig
  children?: ReactNode
}

/**
 * Gives the hooks below it a client, and looks up the user and the wallet once. Creates a wallet for a user without one.
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
  // Avoids loading the JSX runtime for one element.
  return createElement(ServiceContext, { value: service }, children)
}

/** The provider's client and store, without a subscription to its state. */
export function useServiceContext(): Service {
  const service = useContext(ServiceContext)
  if (service === null) throw new Error('useService must be used inside <ServiceProvider>')
  return service
}

export function useStore<State>({ subscribe, getSnapshot, getServerSnapshot }: Store<State>): State {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot)
}

/** The return value of `useService`. New members may be added; the other hooks are stable. */
export type ServiceContextValue = {
  client: ServiceClient
  user: SessionUser | null
  wallet: WalletInfo | null
  /** True once the first lookup has finished, even if it failed. */
  ready: boolean
  /** The error of the last lookup, or null. Being signed out is not an error. */
  error: ServiceError | null
  /** Repeats the lookup. Never rejects. */
  refresh: () => Promise<void>
  /** Leaves the page to sign in at a provider from `GET /auth`, by default the first. Also works as a click handler. */
  login: { (): void; (options: LoginOptions): void }
  /** Ends the session. If the request fails, it clears user and wallet and rejects. */
  logout: () => Promise<void>
}

/**
 * Everything that `ServiceProvider` offers.
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

/** Without the option of `login`: use `useService` to name a provider. */
export type UseWalletReturnType = Pick<
  Omit<ServiceContextValue, 'login'> & { login: () => void },
  'user' | 'wallet' | 'ready' | 'login' | 'logout' | 'refresh'
>

/**
 * The user, the wallet, and functions to sign in and out.
 *
 * @example
 * const { user, wallet, ready, login } = useWallet()
 */
export function useWallet(): UseWalletReturnType {
  const { client: _client, error: _error, ...value } = useService()
  return value
}
