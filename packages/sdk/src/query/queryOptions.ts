import {
  isTerminalProofStatus,
  type ProofPayload,
  type ServiceError,
  type SessionUser,
  type SignRequest,
  type SignResult,
  type WalletInfo,
} from '@countersign/protocol'
import type { DataTag, InfiniteData, MutationOptions, QueryFunctionContext } from '@tanstack/query-core'
import type { TransactionPage } from '../client/api.ts'
import { POLL_INTERVAL_MS } from '../client/proofStore.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import type { SignOffChainOptions } from '../client/signOffChain.ts'
import type { Vault } from '../vaults/vault.ts'
import { listVaults } from '../vaults/vaultCalls.ts'

/**
 * The query keys. They contain service, chain and vault, so that one app can use several. They don't contain the user: after a
 * sign-out, remove `serviceKeys.all(client)`.
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
  /** Without a limit, the key covers pages of every size, for invalidation. */
  transactions: (client: ServiceClient, limit?: number | undefined) => {
    const key = [...serviceKeys.all(client), 'transactions'] as const
    return limit === undefined ? key : ([...key, { limit }] as const)
  },
  signAndSend: (client: ServiceClient) => [...serviceKeys.all(client), 'signAndSend'] as const,
}

const MAX_RETRIES = 3

/** Gives the types of data and error to `queryClient.getQueryData(options.queryKey)`. */
function tag<Data>() {
  return <const Key extends readonly unknown[]>(key: Key) => key as DataTag<Key, Data, ServiceError>
}

/** Retries only errors that are marked retryable. */
function retry(failureCount: number, error: ServiceError): boolean {
  return error.retryable === true && failureCount < MAX_RETRIES
}

/**
 * The signed-in user, or null.
 *
 * @example
 * const { data: user } = useQuery(meQueryOptions(client))
 */
export function meQueryOptions(client: ServiceClient) {
  return {
    queryKey: tag<SessionUser | null>()(serviceKeys.me(client)),
    queryFn: (): Promise<SessionUser | null> => client.api.me(),
    retry,
  }
}

/**
 * The user's wallet, or null. To create one, call `client.api.provisionWallet()`.
 *
 * @example
 * const { data: wallet } = useQuery({ ...walletQueryOptions(client), enabled: user != null })
 */
export function walletQueryOptions(client: ServiceClient) {
  return {
    queryKey: tag<WalletInfo | null>()(serviceKeys.wallet(client)),
    queryFn: (): Promise<WalletInfo | null> => client.api.getWallet(),
    retry,
  }
}

/**
 * The user's vaults.
 *
 * @example
 * const { data: vaults } = useQuery({ ...vaultsQueryOptions(client), enabled: user != null })
 */
export function vaultsQueryOptions(client: ServiceClient) {
  return {
    queryKey: tag<Vault[]>()(serviceKeys.vaults(client)),
    queryFn: (): Promise<Vault[]> => listVaults(client),
    retry,
  }
}

/**
 * The proof of a signature, polled every 4 seconds until it is complete or has failed. Disabled without a slug.
 *
 * @example
 * const { data: proof } = useQuery(proofQueryOptions(client, lastResult?.attestationSlug))
 */
export function proofQueryOptions(client: ServiceClient, slug: string | null | undefined) {
  return {
    queryKey: tag<ProofPayload>()(serviceKeys.proof(client, slug)),
    queryFn: ({ signal }: Pick<QueryFunctionContext, 'signal'>): Promise<ProofPayload> =>
      client.api.getProof(slug ?? '', { signal }),
    enabled: typeof slug === 'string' && slug !== '',
    refetchInterval: ({ state: { data } }: { state: { data: ProofPayload | undefined } }): number | false =>
      data !== undefined && isTerminalProofStatus(data.status) ? false : POLL_INTERVAL_MS,
    // The next poll is the retry.
    retry: (_failureCount: number, _error: ServiceError) => false,
  }
}

/**
 * The user's signatures, newest first, page by page.
 *
 * @example
 * const { data, fetchNextPage } = useInfiniteQuery(transactionsInfiniteQueryOptions(client))
 * const transactions = data?.pages.flatMap((page) => page.transactions)
 */
export function transactionsInfiniteQueryOptions(
  client: ServiceClient,
  { limit }: { limit?: number | undefined } = {},
) {
  return {
    queryKey: tag<InfiniteData<TransactionPage, string | null>>()(serviceKeys.transactions(client, limit)),
    queryFn: ({ pageParam }: { pageParam: string | null }): Promise<TransactionPage> =>
      client.api.listTransactions({ cursor: pageParam ?? undefined, limit }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }: TransactionPage): string | null => nextCursor,
    retry,
  }
}

/**
 * Signs and broadcasts a transaction, once and immediately: a retry could pay twice, and a wait for the network could pay when the
 * user no longer expects it. Pass the wallet that the page shows: if another tab signs in another user, their wallet would pay.
 *
 * @example
 * const { mutate, data } = useMutation(signAndSendMutationOptions(client, { wallet }))
 * mutate({ to: '0x…', value: '0.01' })
 */
export function signAndSendMutationOptions(
  client: ServiceClient,
  options?: Pick<SignOffChainOptions, 'wallet'> | undefined,
) {
  return {
    mutationKey: serviceKeys.signAndSend(client),
    mutationFn: (request: SignRequest): Promise<SignResult> => client.signAndSend(request, options),
    retry: false,
    networkMode: 'always',
  } as const satisfies MutationOptions<SignResult, ServiceError, SignRequest>
}
