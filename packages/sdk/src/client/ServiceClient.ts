import {
  MAX_RETURN_TO_LENGTH,
  type Opening,
  type ProofPayload,
  type SignRequest,
  type SignResult,
} from '@countersign/protocol'
import type { PublicClient } from 'viem'
import { createApi, type ServiceApi } from './api.ts'
import type { Connection, ServiceClientConfig } from './connection.ts'
import { createError } from './errors.ts'
import type { SignAuthorizationRequest, SignMessageRequest, SignTypedDataRequest } from './parseOffChain.ts'
import { parseSignRequest } from './parseSignRequest.ts'
import { createRpcClient, verifyChainId } from './rpc.ts'
import { signAndSend } from './signAndSend.ts'
import type { SignAuthorizationResult, SignOffChainOptions } from './signOffChain.ts'
import type { SignOffChainResult } from './verifyOffChain.ts'
import { verifyWallet } from './verifyWallet.ts'

/** How to sign in. */
export type LoginOptions = {
  /** A provider id from `GET /auth`. Defaults to the first. */
  provider?: string | undefined
}

/** 10,000 gwei: no test network comes near it, and a plain transfer at this fee costs 0.21 ether. */
const MAX_FEE_PER_GAS = 10_000_000_000_000n

/**
 * The service without React. It provisions nothing by itself and keeps no state of the user.
 *
 * @example
 * const client = new ServiceClient({ apiBaseUrl: 'https://api.example.com', chainId: 11155111 })
 * const { txHash, attestationSlug } = await client.signAndSend({ to: '0x…', value: '0.01' })
 */
export class ServiceClient implements Connection {
  declare readonly config: Connection['config']
  declare readonly api: ServiceApi
  #publicClient: PublicClient | undefined
  #isChainVerified = false

  constructor({ apiBaseUrl, chainId, rpcUrl, maxFeePerGas = MAX_FEE_PER_GAS }: ServiceClientConfig) {
    this.config = Object.freeze({ apiBaseUrl: apiBaseUrl.replace(/\/+$/, ''), chainId, rpcUrl, maxFeePerGas })
    this.api = createApi(this.config.apiBaseUrl)
  }

  /** A viem client of the chain, made at first use. Throws `rpc_url_missing` where the chain has no built-in RPC. */
  get publicClient(): PublicClient {
    this.#publicClient ??= createRpcClient(this.config)
    return this.#publicClient
  }

  /** Throws `rpc_chain_mismatch` where the RPC serves another chain. It is asked until it has named the right one. */
  async verifyChain(): Promise<void> {
    if (this.#isChainVerified) return
    await verifyChainId(this.publicClient, this.config.chainId)
    this.#isChainVerified = true
  }

  /**
   * Builds a transaction, has it signed, checks the signature and broadcasts it. Rejects with `wallet_not_ready` where the
   * user has no wallet. An error with `signed` set came after the signing: do not call again blindly. With `wallet`, such as the
   * one that a user has confirmed, it is that wallet which pays, or none.
   */
  async signAndSend(
    request: SignRequest,
    { wallet: named }: Pick<SignOffChainOptions, 'wallet'> = {},
  ): Promise<SignResult> {
    const call = parseSignRequest(request)
    const wallet = named ?? (await verifyWallet(this))
    return signAndSend(this, { wallet, isNamed: named !== undefined, call })
  }

  /**
   * Has a message signed (EIP-191), and checks the signature. Its proof is public, what it says is not: keep the opening, which is
   * answered once.
   */
  async signMessage(request: SignMessageRequest, options?: SignOffChainOptions): Promise<SignOffChainResult> {
    return (await loadOffChain()).signMessage(this, request, options)
  }

  /** Has typed data signed (EIP-712, for the client's chain or for none), and checks the signature. Keep the opening, as of a message. */
  async signTypedData(request: SignTypedDataRequest, options?: SignOffChainOptions): Promise<SignOffChainResult> {
    return (await loadOffChain()).signTypedData(this, request, options)
  }

  /** Has an authorization signed (EIP-7702, for the client's chain), and checks the signature. All of it becomes public. */
  async signAuthorization(
    request: SignAuthorizationRequest,
    options?: SignOffChainOptions,
  ): Promise<SignAuthorizationResult> {
    return (await loadOffChain()).signAuthorization(this, request, options)
  }

  /**
   * Throws `opening_mismatch` unless the opening is of this proof. The proof is what the service says of it: what is pinned and on
   * the chain, a verifier shows.
   *
   * @example
   * await client.verifyOpening(await client.api.getProof(attestationSlug), opening)
   */
  async verifyOpening(proof: ProofPayload, opening: Opening): Promise<void> {
    ;(await loadOffChain()).verifyOpening(proof, opening)
  }

  /**
   * Where a full-page navigation starts the sign-in; the user comes back to `returnTo`, on an origin that is allowed: without its
   * query and fragment if it has more than 2048 characters, which the service rejects.
   */
  loginUrl({ provider = '', returnTo }: LoginOptions & { returnTo?: string | undefined } = {}): string {
    const url = `${this.config.apiBaseUrl}/auth${provider && `/${encodeURIComponent(provider)}`}`
    if (returnTo === undefined) return url
    const page = returnTo.length > MAX_RETURN_TO_LENGTH ? returnTo.replace(/[?#].*/, '') : returnTo
    return `${url}?return_to=${encodeURIComponent(page)}`
  }
}

/** At first use, so that apps which only send transactions stay small. A new release of the app may have taken the old file away. */
function loadOffChain() {
  return import('./signOffChain.ts').catch((cause: unknown) => {
    throw createError('network_unreachable', 'a part of the page is gone', { details: 'reload the page', cause })
  })
}
