import {
  type Hex,
  type ProofPayload,
  ServiceError,
  type SessionUser,
  type SignResult,
  type WalletInfo,
} from '@countersign/protocol'
import {
  environmentManager,
  type InfiniteData,
  MutationObserver,
  onlineManager,
  QueryClient,
  QueryObserver,
} from '@tanstack/query-core'
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from 'vitest'
import { installTestService } from '../../test/testing/installTestService.ts'
import { rule } from '../../test/vaults/vaults.ts'
import type { TransactionPage } from '../client/api.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService, TestServiceOptions } from '../testing/testService.ts'
import { toVaultClient } from '../vaults/toVaultClient.ts'
import { createVault } from '../vaults/vaultCalls.ts'
import {
  meQueryOptions,
  proofQueryOptions,
  serviceKeys,
  signAndSendMutationOptions,
  transactionsInfiniteQueryOptions,
  vaultsQueryOptions,
  walletQueryOptions,
} from './queryOptions.ts'

const SETTLE_MS = 50
const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'

// TanStack polls only in browsers.
environmentManager.setIsServer(() => false)

let service: TestService
let client: ServiceClient
let queryClient: QueryClient
beforeEach(() => {
  start({})
  queryClient = new QueryClient()
})
afterEach(() => {
  queryClient.clear()
  onlineManager.setOnline(true)
  vi.useRealTimers()
})

function start(options: TestServiceOptions): void {
  service = installTestService(options)
  client = new ServiceClient(service.config)
}

function countOf(request: string): number {
  return service.requests.filter((candidate) => candidate === request).length
}

describe('me and wallet', () => {
  test('return the user and the wallet', async () => {
    expect(await queryClient.fetchQuery(meQueryOptions(client))).toEqual(service.user)
    expect(await queryClient.fetchQuery(walletQueryOptions(client))).toEqual(service.wallet)
    expect(queryClient.getQueryData(meQueryOptions(client).queryKey)).toEqual(service.user)
  })

  test('vaults: returns a created vault, and caches it apart from the user’s own wallet', async () => {
    expect(await queryClient.fetchQuery(vaultsQueryOptions(client))).toEqual([])
    const vault = await createVault(client, { version: 1, log: null, approvers: [], rules: [rule] })
    await queryClient.invalidateQueries({ queryKey: serviceKeys.vaults(client) })
    expect(await queryClient.fetchQuery(vaultsQueryOptions(client))).toEqual([vault])
    const vaultClient = toVaultClient(client, vault)
    expect((await queryClient.fetchQuery(walletQueryOptions(vaultClient)))?.address).toBe(vault.address)
    expect(await queryClient.fetchQuery(walletQueryOptions(client))).toEqual(service.wallet)
    queryClient.removeQueries({ queryKey: serviceKeys.all(client) })
    expect(queryClient.getQueryData(vaultsQueryOptions(client).queryKey)).toBeUndefined()
  })

  test('return null without a session or a wallet, and create no wallet', async () => {
    start({ signedIn: false })
    expect(await queryClient.fetchQuery(meQueryOptions(client))).toBeNull()
    await expect(queryClient.fetchQuery(walletQueryOptions(client))).rejects.toMatchObject({ status: 401 })
    start({ provisioned: false })
    expect(await queryClient.fetchQuery(walletQueryOptions(client))).toBeNull()
    expect(service.requests).toEqual(['GET /wallet/me'])
  })

  test('retry only retryable errors, three times', async () => {
    vi.useFakeTimers()
    const observe = () => {
      const observer = new QueryObserver(queryClient, walletQueryOptions(client))
      return observer.subscribe(() => {})
    }
    service.signOut()
    const stop = observe()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(countOf('GET /wallet/me')).toBe(1)
    stop()

    start({})
    queryClient.clear()
    for (let time = 0; time < 4; time++) service.failNext('GET /wallet/me', { code: 'database_unavailable' })
    const stopAgain = observe()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(countOf('GET /wallet/me')).toBe(4)
    expect(queryClient.getQueryState(serviceKeys.wallet(client))?.error).toBeInstanceOf(ServiceError)
    stopAgain()
  })
})

describe('proof', () => {
  async function sign(): Promise<string> {
    return (await client.signAndSend({ to })).attestationSlug
  }

  test('polls every 4 seconds until the proof is complete', async () => {
    const slug = await sign()
    vi.useFakeTimers()
    const observer = new QueryObserver(queryClient, proofQueryOptions(client, slug))
    const stop = observer.subscribe(() => {})
    // TanStack notifies its observers in timers of 0 ms, so the interval starts a little after the answer.
    await vi.advanceTimersByTimeAsync(SETTLE_MS)
    expect(observer.getCurrentResult().data?.status).toBe('pending_pin')
    await vi.advanceTimersByTimeAsync(4000 - 2 * SETTLE_MS)
    expect(countOf('GET /proof/:slug')).toBe(1)
    service.advanceProof(slug)
    await vi.advanceTimersByTimeAsync(3 * SETTLE_MS)
    expect(observer.getCurrentResult().data?.status).toBe('pending_onchain')
    service.advanceProof(slug)
    await vi.advanceTimersByTimeAsync(4000)
    expect(observer.getCurrentResult().data?.status).toBe('complete')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(countOf('GET /proof/:slug')).toBe(3)
    stop()
  })

  test('reports a failure until the next poll', async () => {
    const slug = await sign()
    service.failNext('GET /proof/:slug', { code: 'database_unavailable' })
    vi.useFakeTimers()
    const observer = new QueryObserver(queryClient, proofQueryOptions(client, slug))
    const stop = observer.subscribe(() => {})
    await vi.advanceTimersByTimeAsync(4000 - SETTLE_MS)
    expect(observer.getCurrentResult().error).toMatchObject({ code: 'database_unavailable' })
    expect(countOf('GET /proof/:slug')).toBe(1)
    await vi.advanceTimersByTimeAsync(3 * SETTLE_MS)
    expect(observer.getCurrentResult()).toMatchObject({ error: null, data: { status: 'pending_pin' } })
    stop()
  })

  test.each([null, undefined, ''])('does not poll without a slug (%j)', async (slug) => {
    vi.useFakeTimers()
    const observer = new QueryObserver(queryClient, proofQueryOptions(client, slug))
    const stop = observer.subscribe(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect(service.requests).toEqual([])
    expect(observer.getCurrentResult().fetchStatus).toBe('idle')
    stop()
  })

  test('aborts the request of a cancelled query', async () => {
    const slug = await sign()
    const key = proofQueryOptions(client, slug).queryKey
    const fetching = queryClient.fetchQuery(proofQueryOptions(client, slug))
    await queryClient.cancelQueries({ queryKey: key })
    await expect(fetching).rejects.toThrow()
    expect(queryClient.getQueryData(key)).toBeUndefined()
  })
})

describe('transactions', () => {
  test('loads page by page until the last', async () => {
    for (let time = 0; time < 3; time++) await client.signAndSend({ to })
    const options = transactionsInfiniteQueryOptions(client, { limit: 2 })
    const { pages } = await queryClient.fetchInfiniteQuery({ ...options, pages: 5 })
    expect(pages.map(({ transactions }) => transactions.length)).toEqual([2, 1])
    const slugs = pages.flatMap(({ transactions }) => transactions.map(({ slug }) => slug))
    expect(slugs).toEqual(service.proofs.map(({ slug }) => slug).toReversed())
  })
})

describe('signAndSend', () => {
  test('only the given wallet pays', async () => {
    const other = { ...service.wallet, address: to }
    const mutation = new MutationObserver(queryClient, signAndSendMutationOptions(client, { wallet: other }))
    await expect(mutation.mutate({ to })).rejects.toMatchObject({ code: 'wallet_changed' })
    expect(countOf('POST /sign/digest')).toBe(0)
    mutation.setOptions(signAndSendMutationOptions(client, { wallet: service.wallet }))
    await mutation.mutate({ to })
    expect(service.transactions).toHaveLength(1)
  })

  test('never retries, even if the app’s default does', async () => {
    queryClient.setDefaultOptions({ mutations: { retry: 5, retryDelay: 0 } })
    service.failNext('POST /sign/digest', { code: 'entropy_unavailable' })
    const mutation = new MutationObserver(queryClient, signAndSendMutationOptions(client))
    await expect(mutation.mutate({ to })).rejects.toMatchObject({ code: 'entropy_unavailable' })
    expect(countOf('POST /sign/digest')).toBe(1)
  })

  test('does not wait for the network', async () => {
    onlineManager.setOnline(false)
    service.failNext('GET /wallet/me', 'network')
    const mutation = new MutationObserver(queryClient, signAndSendMutationOptions(client))
    await expect(mutation.mutate({ to })).rejects.toMatchObject({ code: 'network_unreachable' })
    onlineManager.setOnline(true)
    await queryClient.resumePausedMutations()
    expect(service.proofs).toEqual([])
  })
})

describe('keys', () => {
  test('differ by service and chain, under one prefix', () => {
    const base = { apiBaseUrl: 'https://a.test', chainId: 1 }
    const clients = [base, { ...base, chainId: 2 }, { ...base, apiBaseUrl: 'https://b.test' }].map(
      (config) => new ServiceClient(config),
    )
    expect(new Set(clients.map((one) => JSON.stringify(serviceKeys.me(one)))).size).toBe(3)
    const all = JSON.stringify(serviceKeys.all(client)).slice(0, -1)
    const { me, wallet, proof, transactions, signAndSend } = serviceKeys
    const keys = [
      me(client),
      wallet(client),
      proof(client, 'a'),
      proof(client, 'b'),
      transactions(client),
      signAndSend(client),
    ]
    const texts = keys.map((key) => JSON.stringify(key))
    expect(new Set(texts).size).toBe(keys.length)
    expect(texts.every((text) => text.startsWith(`${all},`))).toBe(true)
    // One cache entry for every spelling of the address.
    expect(serviceKeys.me(new ServiceClient({ ...base, apiBaseUrl: 'https://a.test/' }))).toEqual(
      me(new ServiceClient(base)),
    )
  })

  test('transactions without a limit match every limit', async () => {
    const all = [undefined, 20, 50].map((limit) => transactionsInfiniteQueryOptions(client, { limit }))
    for (const options of all) await queryClient.fetchInfiniteQuery(options)
    await queryClient.invalidateQueries({ queryKey: serviceKeys.transactions(client) })
    const isInvalidated = all.map(({ queryKey }) => queryClient.getQueryState(queryKey)?.isInvalidated)
    expect(isInvalidated).toEqual([true, true, true])
    expect(countOf('GET /wallet/transactions')).toBe(3)
  })
})

test('types: data and errors are known to TanStack Query and its React hooks', () => {
  // Never called: hooks live in components.
  const hooks = () => ({
    me: useQuery(meQueryOptions(client)),
    wallet: useQuery(walletQueryOptions(client)),
    proof: useQuery(proofQueryOptions(client, null)),
    transactions: useInfiniteQuery(transactionsInfiniteQueryOptions(client)),
    send: useMutation(signAndSendMutationOptions(client)),
  })
  type Hooks = ReturnType<typeof hooks>
  expectTypeOf<Hooks['me']['data']>().toEqualTypeOf<SessionUser | null | undefined>()
  expectTypeOf<Hooks['me']['error']>().toEqualTypeOf<ServiceError | null>()
  expectTypeOf<Hooks['wallet']['data']>().toEqualTypeOf<WalletInfo | null | undefined>()
  expectTypeOf<Hooks['proof']['data']>().toEqualTypeOf<ProofPayload | undefined>()
  expectTypeOf<Hooks['proof']['error']>().toEqualTypeOf<ServiceError | null>()
  expectTypeOf<Hooks['transactions']['data']>().toEqualTypeOf<InfiniteData<TransactionPage, unknown> | undefined>()
  expectTypeOf<Hooks['send']['data']>().toEqualTypeOf<SignResult | undefined>()
  const cached = () => queryClient.getQueryData(proofQueryOptions(client, 'a').queryKey)
  expectTypeOf(cached).returns.toEqualTypeOf<ProofPayload | undefined>()
})
