import type { ServiceClient } from '../client/ServiceClient.ts'

/**
 * The keys of everything that is cached here. They hold what the answers depend on, so that two services, chains or vaults in
 * one app are kept apart. The user is not part of them: after a sign-out remove `serviceKeys.all(client)`.
 *
 * @example
 * queryClient.removeQueries({ queryKey: serviceKeys.all(client) })
 */
export const serviceKeys = {
  all: ({ config: { apiBaseUrl, chainId, wallet } }: ServiceClient) =>
    ['countersign', { apiBaseUrl, chainId, ...(wallet && { wallet }) }] as const,
  me: (client: ServiceClient) => [...serviceKeys.all(client), 'me'] as const,
  wallet: (client: ServiceClient) => [...serviceKeys.all(client), 'wallet'] as const,
  vaults: (client: ServiceClient) => [...serviceKeys.all(client), 'vaults'] as const,
  proof: (client: ServiceClient, slug: string | null | undefined) =>
    [...serviceKeys.all(client), 'proof', slug ?? null] as const,
  /** Without a limit, of the pages of every size: for invalidation. */
  transactions: (client: ServiceClient, limit?: number | undefined) => {
    const key = [...serviceKeys.all(client), 'transactions'] as const
    return limit === undefined ? key : ([...key, { limit }] as const)
  },
  signAndSend: (client: ServiceClient) => [...serviceKeys.all(client), 'signAndSend'] as const,
}
