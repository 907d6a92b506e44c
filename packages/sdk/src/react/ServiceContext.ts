'use client'

import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Store } from '../client/createStore.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import type { ServiceStore } from '../client/serviceStore.ts'

export type Service = { client: ServiceClient; store: ServiceStore }

export const ServiceContext = createContext<Service | null>(null)

/** The client and the store of the provider above; hooks that show no state of the user need no more. */
export function useServiceContext(): Service {
  const service = useContext(ServiceContext)
  if (service === null) throw new Error('useService must be used inside <ServiceProvider>')
  return service
}

export function useStore<State>({ subscribe, getSnapshot, getServerSnapshot }: Store<State>): State {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot)
}
