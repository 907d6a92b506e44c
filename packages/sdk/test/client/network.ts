import {
  type Authorization,
  type Hex,
  hashAuthorization,
  hashMessage,
  hashTypedData,
  type MessageContent,
  type OpeningContent,
  type ProofPayload,
  type ProofStatus,
  type SessionUser,
  type TypedData,
  toPrefixedHex,
  type WalletInfo,
  type WalletUse,
} from '@countersign/protocol'
import { keccak256, numberToHex, parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { onTestFinished, vi } from 'vitest'
import { forgetSent } from '../../src/client/sendLock.ts'

/** A public development key of hardhat. */
const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')

export const apiBaseUrl = 'https://api.test'
const rpcUrl = 'https://rpc.test'
export const chainId = 31337
export const config = { apiBaseUrl, chainId, rpcUrl }

export const user: SessionUser = { id: '7a1f0c7e-5d0b-4c55-9d5e-0d9a3c1b2e4f', email: 'ada@example.com', name: 'Ada' }

export const wallet: WalletInfo = {
  address: account.address.toLowerCase() as Hex,
  createdAt: '2026-01-02T03:04:05.678Z',
  provenance: { entropyHash: 'ab'.repeat(32), entropySig: 'cd'.repeat(64), satelliteSource: 'simulated-satellite' },
}

export function createProof(slug: string, status: ProofStatus = 'pending_pin'): ProofPayload {
  return {
    slug,
    txHash: `0x${'11'.repeat(32)}`,
    chainId,
    walletAddress: wallet.address,
    status,
    ipfsCid: status === 'complete' ? 'bafk' : null,
    ipfsUrl: null,
    onchainTxHash: status === 'complete' ? `0x${'22'.repeat(32)}` : null,
    onchainBlockNumber: status === 'complete' ? 5 : null,
    kmsQuoteVerified: true,
    receipt: null,
    createdAt: '2026-01-02T03:04:05.678Z',
  }
}

type Content = OpeningContent extends infer Half ? (Half extends unknown ? Omit<Half, 'salt'> : never) : never

async function signOffChain(content: Content): Promise<Response> {
  const signature = await account.sign({ hash: content.digest })
  const opening = {
    content: { ...content, salt: 'a1'.repeat(32) },
    signature: { signature, salt: 'b2'.repeat(32) },
  }
  return json({ signature, slug: 'slug-off-chain', opening })
}

export type Call = { method: string; url: string; body: unknown; init: RequestInit }
type Handler = (call: Call) => Response | Promise<Response>

export const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })

export const problem = (status: number, code: string, more: Record<string, unknown> = {}) =>
  json({ type: `/docs/errors#${code}`, title: code, status, code, requestId: 'r', retryable: false, ...more }, status)

export const html = (status = 200) =>
  new Response('<!doctype html><h1>It works!</h1>', { status, headers: { 'content-type': 'text/html' } })

/** An answer that never arrives; rejects if the caller aborts. */
export const never = ({ init: { signal } }: Pick<Call, 'init'>) =>
  new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))

/**
 * The service and an RPC behind one `fetch`. Tests replace single routes (`GET /auth/me`) and RPC methods. By default the user is signed
 * in and has a wallet.
 */
function createFakeNetwork() {
  forgetSent()
  const calls: Call[] = []
  const mempool: Hex[] = []
  /** The service creates one proof for each digest. */
  const digests: Hex[] = []

  const routes: Record<string, Handler> = {
    'GET /auth/me': () => json(user),
    'POST /auth/logout': () => json({ ok: true }),
    'GET /wallet/me': () => json(wallet),
    'POST /wallet/provision': () => json(wallet),
    'POST /sign/digest': async ({ body }) => {
      const { digest } = body as { digest: Hex }
      if (!digests.includes(digest)) digests.push(digest)
      const signature = await account.sign({ hash: digest })
      return json({ signature, slug: `slug-${digests.indexOf(digest) + 1}` })
    },
    // Hashed like in the enclave, not like in the SDK.
    'POST /sign/message': ({ body }) => {
      const { wallet: _, ...content } = body as MessageContent & WalletUse
      return signOffChain({ kind: 'message', content, digest: toPrefixedHex(hashMessage(content.message)) })
    },
    'POST /sign/typed-data': ({ body }) => {
      const { wallet: _, ...content } = body as TypedData & WalletUse
      return signOffChain({ kind: 'typed-data', content, digest: toPrefixedHex(hashTypedData(content)) })
    },
    'POST /sign/authorization': async ({ body }) => {
      const hash = toPrefixedHex(hashAuthorization(body as Authorization))
      return json({ signature: await account.sign({ hash }), slug: 'slug-authorization' })
    },
    'GET /wallet/transactions': () => json({ transactions: [], nextCursor: null }),
  }

  const rpc: Record<string, (params: unknown[], call: Call) => unknown> = {
    eth_chainId: () => numberToHex(chainId),
    eth_getTransactionCount: () => numberToHex(7 + mempool.length),
    eth_getBlockByNumber: () => ({ baseFeePerGas: numberToHex(parseGwei('10')), number: '0x1', transactions: [] }),
    eth_maxPriorityFeePerGas: () => numberToHex(parseGwei('1')),
    eth_sendRawTransaction: ([raw]) => {
      mempool.push(raw as Hex)
      return keccak256(raw as Hex)
    },
    eth_getTransactionByHash: ([hash]) => (mempool.some((raw) => keccak256(raw) === hash) ? { hash } : null),
  }

  async function answerRpc(call: Call): Promise<Response> {
    const { id, method, params } = call.body as { id: number; method: string; params?: unknown[] }
    const handler = rpc[method]
    if (!handler) return json({ jsonrpc: '2.0', id, error: { code: -32601, message: `no ${method}` } })
    try {
      const result = await handler(params ?? [], call)
      return result instanceof Response ? result : json({ jsonrpc: '2.0', id, result })
    } catch (error) {
      if (call.init.signal?.aborted) throw error
      return json({ jsonrpc: '2.0', id, error: { code: -32000, message: (error as Error).message } })
    }
  }

  async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const url = String(input)
    const method = init.method ?? 'GET'
    const call = { method, url, init, body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined }
    calls.push(call)
    if (url.startsWith(rpcUrl)) return answerRpc(call)
    const route = `${method} ${url.slice(apiBaseUrl.length).replace(/\?.*/, '')}`
    const handler = url.startsWith(apiBaseUrl) ? routes[route] : undefined
    if (!handler) throw new TypeError(`fetch failed: ${method} ${url}`)
    return handler(call)
  }

  return {
    fetch,
    routes,
    rpc,
    calls,
    /** Raw transactions that the RPC accepted. */
    mempool,
    /** The calls of the service so far, as `GET /auth/me`. */
    paths: () =>
      calls
        .filter(({ url }) => url.startsWith(apiBaseUrl))
        .map(({ method, url }) => `${method} ${url.slice(apiBaseUrl.length)}`),
    /** The methods called on the RPC. */
    rpcMethods: () =>
      calls.filter(({ url }) => url.startsWith(rpcUrl)).map(({ body }) => (body as { method: string }).method),
  }
}

export type FakeNetwork = ReturnType<typeof createFakeNetwork>

/** Replaces the global `fetch` until the end of the test. */
export function installFakeNetwork(): FakeNetwork {
  const network = createFakeNetwork()
  vi.stubGlobal('fetch', network.fetch)
  onTestFinished(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })
  return network
}

/** A promise with its resolve and reject functions. */
export function createGate<R = void>() {
  let open: (value: R) => void = () => {}
  let fail: (error: unknown) => void = () => {}
  const opened = new Promise<R>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}

/** Storage and address of a page, in memory. */
export function createFakePage({ now = 1_000_000, canStore = true, url = 'https://app.test/pay?x=1#here' } = {}) {
  const items = new Map<string, string>()
  const page = {
    time: now,
    visited: [] as string[],
    items,
    url,
    isBackPage: false,
    getUrl: () => page.url,
    assign(url: string) {
      page.visited.push(url)
    },
    getItem: (key: string) => (canStore ? (items.get(key) ?? null) : null),
    setItem(key: string, value: string | null) {
      if (value === null) items.delete(key)
      else items.set(key, value)
    },
    now: () => page.time,
    isBack: () => page.isBackPage,
  }
  return page
}
