import { type Hex, ServiceError, type WalletInfo } from '@countersign/protocol'
import { type EIP1193EventMap, type EIP1193Provider, numberToHex } from 'viem'
import type { SignedEvent } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { callNode, Eip1193Error, eip1193Codes, invalidParams, isUnauthorized, toEip1193Error } from './errors.ts'
import {
  isObject,
  parsePersonalSign,
  parseSignTypedData,
  parseTransaction,
  type RequestedContent,
} from './parseTransaction.ts'
import { createCallBatches } from './sendCalls.ts'
import { type ConfirmRequest, type Signing, sendTransaction, signContent } from './sendTransaction.ts'
import { toLoginUrl } from './toLoginUrl.ts'

export type Eip1193ProviderOptions = {
  /**
   * Called by `eth_requestAccounts` without a session: redirect the page to `url`. The provider then checks the session again. Without a
   * session, the request rejects with 4100.
   */
  onLogin?: ((url: string) => void | Promise<void>) | undefined
  /**
   * Asks the user before a signature. False rejects with 4001. **Without it, the provider signs everything that the page requests.** A
   * transaction's fees are read afterwards. They never exceed the client's `maxFeePerGas` or the dapp's maximum.
   */
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  /**
   * Called after each signature with the slug of its proof. The only way to get the opening of a message or typed data, because the
   * request returns only the signature.
   */
  onSigned?: ((signed: SignedEvent) => void) | undefined
  /** Called by `wallet_showCallsStatus`: show the batch with this id. */
  onShowCalls?: ((id: string) => void) | undefined
}

/** Unsupported methods, with the reason. */
const REFUSED_SIGNATURES: ReadonlyMap<string, string> = new Map([
  ['eth_sign', 'a bare hash hides its content; use personal_sign'],
  ['eth_signTypedData', 'use eth_signTypedData_v4'],
  ['eth_signTypedData_v1', 'use eth_signTypedData_v4'],
  ['eth_signTypedData_v3', 'use eth_signTypedData_v4'],
  ['eth_signTransaction', 'use eth_sendTransaction'],
])

/**
 * The wallet as an EIP-1193 provider, for libraries that expect `window.ethereum`. It sends transactions, signs messages and typed data,
 * and passes read-only requests to the RPC. Nonce and fees come from the chain. A request for others fails with -32003.
 * `eth_requestAccounts` creates the wallet if the user has none.
 *
 * @example
 * const provider = createEip1193Provider(client, { onLogin: (url) => location.assign(url) })
 * const [account] = await provider.request({ method: 'eth_requestAccounts' })
 */
export function createEip1193Provider(client: ServiceClient, options: Eip1193ProviderOptions = {}): EIP1193Provider {
  const { chainId } = client.config
  const chainIdHex = numberToHex(chainId)
  const emitter = createEmitter()
  const batches = createCallBatches(client)
  let currentAccounts: readonly Hex[] = []
  let isRevoked = false
  let revocations = 0

  /** Stores the current account and emits changes. */
  function remember(accounts: readonly Hex[]): Hex[] {
    const [before, after] = [currentAccounts[0], accounts[0]]
    currentAccounts = accounts
    if (before === undefined && after !== undefined) emitter.emit('connect', { chainId: chainIdHex })
    if (before !== after) emitter.emit('accountsChanged', [...accounts])
    return [...accounts]
  }

  function forget(error: Eip1193Error): void {
    if (currentAccounts.length > 0) emitter.emit('disconnect', error as never)
    remember([])
  }

  /** Throws an EIP-1193 error. Clears the account if the session has ended. */
  function fail(error: unknown): never {
    const failure = toEip1193Error(error)
    if (failure.cause instanceof ServiceError && failure.cause.status === 401) forget(disconnected(failure.cause))
    throw failure
  }

  const findWallet = (): Promise<WalletInfo | null> => client.api.getWallet().catch(fail)
  const provision = (): Promise<WalletInfo> => client.api.provisionWallet().catch(fail)

  async function getAccounts(): Promise<Hex[]> {
    if (isRevoked) return []
    try {
      const wallet = await findWallet()
      // The app may have revoked the permission meanwhile.
      if (isRevoked) return []
      return remember(wallet === null ? [] : [wallet.address])
    } catch (error) {
      if (isUnauthorized(error)) return []
      throw error
    }
  }

  async function findOrProvision(): Promise<Hex[]> {
    const before = revocations
    // Checks that this browser has the session's key.
    if (client.config.session !== undefined) await client.api.me().catch(fail)
    const wallet = (await findWallet()) ?? (await provision())
    if (before !== revocations)
      throw new Eip1193Error(eip1193Codes.userRejected, 'the permission was revoked meanwhile')
    isRevoked = false
    return remember([wallet.address])
  }

  async function requestAccounts(): Promise<Hex[]> {
    try {
      return await findOrProvision()
    } catch (error) {
      if (!isUnauthorized(error) || options.onLogin === undefined) throw error
      await options.onLogin(await toLoginUrl(client))
      return await findOrProvision()
    }
  }

  function assertAllowed(): void {
    if (isRevoked) throw unauthorized()
  }

  async function sign(act: (signing: Signing) => Promise<Hex>): Promise<Hex> {
    assertAllowed()
    const wallet = await findWallet()
    if (wallet === null) throw unauthorized()
    const { onConfirm, onSigned } = options
    return act({ wallet, assertAllowed, onConfirm, onSigned }).catch(fail)
  }

  async function send(params: unknown): Promise<Hex> {
    const requested = parseTransaction(params, chainId)
    return sign((signing) => sendTransaction(client, signing, requested))
  }

  /** One call of a batch, with the slug of its proof. */
  async function sendCall(call: Record<string, unknown>): Promise<{ hash: Hex; slug: string }> {
    const requested = parseTransaction([call], chainId)
    let slug = ''
    const hash = await sign((signing) =>
      sendTransaction(
        client,
        {
          ...signing,
          onSigned(signed) {
            slug = signed.slug
            signing.onSigned?.(signed)
          },
        },
        requested,
      ),
    )
    return { hash, slug }
  }

  function showCalls(params: unknown): null {
    batches.assertKnown(params)
    options.onShowCalls?.((params as [string])[0])
    return null
  }

  const signOffChain = (requested: RequestedContent) => sign((signing) => signContent(client, signing, requested))

  function switchChain(params: unknown): null {
    const requested = toFirst(params)?.chainId
    if (typeof requested !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(requested))
      throw invalidParams('expected a chainId in hex')
    if (BigInt(requested) === BigInt(chainId)) return null
    const message = `the wallet is only on chain ${chainId}, not on ${BigInt(requested)}`
    throw new Eip1193Error(eip1193Codes.unrecognizedChain, message)
  }

  function revoke(params: unknown): null {
    assertAccountsPermission(params)
    isRevoked = true
    revocations += 1
    remember([])
    return null
  }

  async function getCapabilities(params: unknown): Promise<Record<Hex, unknown>> {
    const [address] = Array.isArray(params) ? (params as unknown[]) : []
    const [account] = await getAccounts()
    if (typeof address === 'string' && address.toLowerCase() !== account?.toLowerCase()) throw unauthorized()
    return { [chainIdHex]: { atomic: { status: 'unsupported' } } }
  }

  const methods: Record<string, (params: unknown) => unknown> = {
    eth_requestAccounts: requestAccounts,
    eth_accounts: getAccounts,
    eth_chainId: () => chainIdHex,
    net_version: () => String(chainId),
    eth_sendTransaction: send,
    // viem retries with this name after an error. The same handler keeps the reason.
    wallet_sendTransaction: send,
    personal_sign: (params) => signOffChain(parsePersonalSign(params)),
    eth_signTypedData_v4: (params) => signOffChain(parseSignTypedData(params, chainId)),
    wallet_switchEthereumChain: switchChain,
    wallet_requestPermissions: async (params) => {
      assertAccountsPermission(params)
      return toPermissions(await requestAccounts())
    },
    wallet_getPermissions: async () => toPermissions(await getAccounts()),
    wallet_revokePermissions: revoke,
    wallet_getCapabilities: getCapabilities,
    wallet_sendCalls: (params) => batches.send(batches.parse(params), sendCall),
    wallet_getCallsStatus: batches.getStatus,
    wallet_showCallsStatus: showCalls,
  }

  async function request({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
    const handle = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (handle !== undefined) return handle(params)
    // Passed to the node as they are.
    if (READ_METHODS.has(method)) return callNode(() => client.publicClient.request({ method, params } as never))
    const reason = REFUSED_SIGNATURES.get(method)
    const message = `the wallet does not support ${method}${reason === undefined ? '' : `: ${reason}`}`
    const cause = createError('unsupported_method', message)
    throw new Eip1193Error(eip1193Codes.unsupportedMethod, message, { cause })
  }

  return {
    on: emitter.on,
    removeListener: emitter.removeListener,
    async request(parameters: { method?: unknown; params?: unknown } | null | undefined) {
      // Read once, because `parameters` may be any object, with getters.
      const { method, params } = parameters ?? {}
      if (typeof method !== 'string') throw invalidParams('expected { method, params }')
      try {
        return await request({ method, params })
      } catch (error) {
        throw toEip1193Error(error)
      }
    },
  } as EIP1193Provider
}

function toFirst(params: unknown): Record<string, unknown> | undefined {
  const [first] = Array.isArray(params) ? (params as unknown[]) : []
  return isObject(first) ? first : undefined
}

/** EIP-2255: `eth_accounts` is the only permission. */
function assertAccountsPermission(params: unknown): void {
  const names = Object.keys(toFirst(params) ?? {})
  if (names.length !== 1 || names[0] !== 'eth_accounts') throw invalidParams('expected [{ eth_accounts: {} }]')
}

function toPermissions(accounts: readonly Hex[]) {
  if (accounts.length === 0) return []
  return [{ parentCapability: 'eth_accounts', caveats: [{ type: 'restrictReturnedAccounts', value: accounts }] }]
}

function unauthorized() {
  return new Eip1193Error(eip1193Codes.unauthorized, 'the app has no account yet: ask for it with eth_requestAccounts')
}

function disconnected(cause: unknown) {
  return new Eip1193Error(eip1193Codes.disconnected, 'the session is over', { cause })
}

type EventName = keyof EIP1193EventMap

type Emitter = {
  on<Name extends EventName>(name: Name, listener: EIP1193EventMap[Name]): void
  removeListener<Name extends EventName>(name: Name, listener: EIP1193EventMap[Name]): void
  emit<Name extends EventName>(name: Name, ...parameters: Parameters<EIP1193EventMap[Name]>): void
}

/** Calls listeners in order, in microtasks, so that an error in one affects no other code. */
function createEmitter(): Emitter {
  const listeners = new Map<EventName, unknown[]>()
  const listed = (name: EventName) => listeners.get(name) ?? []
  return {
    on(name, listener) {
      listeners.set(name, [...listed(name), listener])
    },
    removeListener(name, listener) {
      const index = listed(name).indexOf(listener)
      if (index >= 0) listeners.set(name, listed(name).toSpliced(index, 1))
    },
    emit(name, ...parameters) {
      for (const listener of listed(name)) {
        queueMicrotask(() => (listener as (...values: typeof parameters) => void)(...parameters))
      }
    },
  }
}

/** Read-only methods that the RPC answers. */
const READ_METHODS: ReadonlySet<string> = new Set([
  'eth_blobBaseFee',
  'eth_blockNumber',
  'eth_call',
  'eth_createAccessList',
  'eth_estimateGas',
  'eth_feeHistory',
  'eth_gasPrice',
  'eth_getBalance',
  'eth_getBlockByHash',
  'eth_getBlockByNumber',
  'eth_getBlockReceipts',
  'eth_getBlockTransactionCountByHash',
  'eth_getBlockTransactionCountByNumber',
  'eth_getCode',
  'eth_getFilterChanges',
  'eth_getFilterLogs',
  'eth_getLogs',
  'eth_getProof',
  'eth_getStorageAt',
  'eth_getTransactionByBlockHashAndIndex',
  'eth_getTransactionByBlockNumberAndIndex',
  'eth_getTransactionByHash',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_getUncleByBlockHashAndIndex',
  'eth_getUncleByBlockNumberAndIndex',
  'eth_getUncleCountByBlockHash',
  'eth_getUncleCountByBlockNumber',
  'eth_maxPriorityFeePerGas',
  'eth_newBlockFilter',
  'eth_newFilter',
  'eth_newPendingTransactionFilter',
  'eth_simulateV1',
  'eth_syncing',
  'eth_uninstallFilter',
  'web3_clientVersion',
])
