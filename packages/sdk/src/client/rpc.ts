import { type Hex, ServiceError, withinTimeLimit } from '@countersign/protocol'
import { BaseError, createPublicClient, http, type PublicClient, type RpcRequestError } from 'viem'
import type { ServiceClientConfig } from './connection.ts'
import { createError } from './errors.ts'

/** Sepolia and Base Sepolia need no `rpcUrl`. */
const DEFAULT_RPC_URLS: Record<number, string> = {
  11155111: 'https://ethereum-sepolia-rpc.publicnode.com',
  84532: 'https://sepolia.base.org',
}

/** Of one attempt. */
export const RPC_TIMEOUT_MS = 10_000

export function createRpcClient({ chainId, rpcUrl }: ServiceClientConfig): PublicClient {
  // `||`, because an unset variable of a build can leave an empty string.
  const url = rpcUrl || DEFAULT_RPC_URLS[chainId]
  if (url === undefined) {
    throw createError('rpc_url_missing', 'this chain needs an rpcUrl', {
      details: `chain ${chainId}`,
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
      timeout: 0,
      retryCount: 1,
      fetchFn,
    }),
  })
}

/** Applies the time limit to the body too. viem's own limit ends with the headers, so a node could stall forever. */
function fetchFn(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const ask = async (signal: AbortSignal) => {
    const response = await globalThis.fetch(input, { ...init, signal })
    return new Response(await response.text(), response)
  }
  return withinTimeLimit(RPC_TIMEOUT_MS, ask, init)
}

/** Sends a read-only request. Rejects only with a `ServiceError`. */
export async function callRpc<R>(question: () => Promise<R>): Promise<R> {
  try {
    return await question()
  } catch (error) {
    if (error instanceof ServiceError) throw error
    if (find(error, 'TimeoutError')) {
      throw createError('rpc_timeout', 'the RPC did not answer in time', { cause: error, retryable: true })
    }
    throw rpcFailed(toWords(error), error)
  }
}

export function rpcFailed(details: string, cause?: unknown) {
  return createError('rpc_failed', 'the RPC failed', { details, cause })
}

/** A transaction has its chain id, but nonce and fees of another chain would still be wrong. */
export async function verifyChainId(publicClient: PublicClient, expected: number): Promise<void> {
  const chainId = await callRpc(() => publicClient.getChainId())
  if (chainId === expected) return
  throw createError('rpc_chain_mismatch', 'the RPC serves another chain', { details: `chain ${chainId}` })
}

/** Whether the RPC has the transaction, mined or pending. */
export async function isKnown(publicClient: PublicClient, hash: Hex): Promise<boolean> {
  const found = await callRpc(() => publicClient.request({ method: 'eth_getTransactionByHash', params: [hash] }))
  return found?.hash === hash
}

/** The RPC's own error, if the failure came from the RPC and not from a proxy or the network. */
export function findRefusal(error: unknown): RpcRequestError | null {
  return find(error, 'RpcRequestError') as RpcRequestError | null
}

/** The RPC's message, without its URL, which may contain the app's key. */
export function toWords(error: unknown): string {
  if (!(error instanceof BaseError)) return 'no usable answer'
  return (findRefusal(error)?.details || error.details || error.shortMessage).slice(0, 500)
}

/** By name, because the error of a timeout is not viem's. */
function find(error: unknown, name: string): unknown {
  return error instanceof BaseError ? error.walk((cause) => (cause as Error).name === name) : null
}
