'use client'

import { createElement, type ReactNode, useEffect, useMemo } from 'react'
import type { ServiceClientConfig } from '../client/connection.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import { createServiceStore } from '../client/serviceStore.ts'
import { ServiceContext } from './useService.ts'

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
