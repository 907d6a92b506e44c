import { type Hex, isPlainObject, ServiceError, withinTimeLimit } from '@countersign/protocol'
import { BaseError, createPublicClient, http, type PublicClient, RpcRequestError, TimeoutError } from 'viem'
import type { ServiceClientConfig } from './connection.ts'
import { createError } from './errors.ts'

/** Public endpoints of the two test networks that need no `rpcUrl`: Sepolia and Base Sepolia. */
const DEFAULT_RPC_URLS: Record<number, string> = {
  11155111: 'https://ethereum-sepolia-rpc.publicnode.com',
  84532: 'https://sepolia.base.org',
}

/** For one attempt; viem waits this long for the first byte. */
const ATTEMPT_TIMEOUT_MS = 10_000
/** For one question with its second attempt and the bodies, which viem would read for ever. */
export const RPC_TIMEOUT_MS = 30_000

/** viem's client of the configured chain. It is made at first use, so that building a `ServiceClient` never throws. */
export function createRpcClient({ chainId, rpcUrl }: ServiceClientConfig): PublicClient {
  // An empty text is what an unset variable of a build leaves behind.
  const url = rpcUrl || DEFAULT_RPC_URLS[chainId]
  if (url === undefined) {
    throw createError('rpc_url_missing', 'this chain needs an rpcUrl', {
      details: `chain ${chainId} has no built-in RPC`,
    })
  }
  return createPublicClient({
    chain: {
      id: chainId,
      name: `Chain ${chainId}`,
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
      rpcUrls: { default: { http: [url] } },
    },
    transport: http(url, {
      timeout: ATTEMPT_TIMEOUT_MS,
      retryCount: 1,
      fetchFn: (input, init) => globalThis.fetch(input, init),
    }),
  })
}

/** Asks the RPC something that changes nothing; every failure is a `ServiceError`. */
export async function askRpc<R>(question: () => Promise<R>): Promise<R> {
  try {
    return await withinTimeLimit(RPC_TIMEOUT_MS, question, { createError: timedOut })
  } catch (error) {
    if (error instanceof ServiceError) throw error
    if (find(error, TimeoutError)) throw timedOut(error)
    throw rpcFailed(toWords(error), error)
  }
}

export function rpcFailed(details: string, cause?: unknown) {
  return createError('rpc_failed', 'the RPC failed', { details, cause })
}

/** A transaction carries its chain id, but nonce and fees of another chain would still make a wrong one. */
export async function verifyChainId(publicClient: PublicClient, expected: number): Promise<void> {
  const chainId = await askRpc(() => publicClient.getChainId())
  if (chainId === expected) return
  const details = `it serves ${chainId}, not ${expected}`
  throw createError('rpc_chain_mismatch', 'the RPC serves another chain', { details })
}

/** Whether the RPC has the transaction, mined or pending. */
export async function isKnown(publicClient: PublicClient, hash: Hex): Promise<boolean> {
  const found: unknown = await askRpc(() =>
    publicClient.request({ method: 'eth_getTransactionByHash', params: [hash] }),
  )
  return isPlainObject(found) && found.hash === hash
}

/** The answer with which the RPC refused, if it was the RPC that spoke and not a proxy or the network. */
export function findRefusal(error: unknown): RpcRequestError | undefined {
  return find(error, RpcRequestError)
}

/** What the RPC said, without its address: that may carry a key of the app. */
export function toWords(error: unknown): string {
  if (!(error instanceof BaseError)) return 'no usable answer'
  return (findRefusal(error)?.details || error.details || error.shortMessage).slice(0, 500)
}

function find<E extends Error>(error: unknown, type: new (...parameters: never[]) => E): E | undefined {
  if (!(error instanceof BaseError)) return undefined
  return (error.walk((cause) => cause instanceof type) as E | null) ?? undefined
}

function timedOut(cause?: unknown) {
  return createError('rpc_timeout', 'the RPC did not answer in time', { cause, retryable: true })
}
