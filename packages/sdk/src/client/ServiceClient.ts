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

/** 10,000 gwei. A plain transfer at this fee costs 0.21 ether. */
const MAX_FEE_PER_GAS = 10_000_000_000_000n

/**
 * The service without React. It has no state of the user, and creates a wallet only on request.
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

  constructor({ apiBaseUrl, maxFeePerGas = MAX_FEE_PER_GAS, ...config }: ServiceClientConfig) {
    this.config = Object.freeze({ ...config, apiBaseUrl: apiBaseUrl.replace(/\/+$/, ''), maxFeePerGas })
    this.api = createApi(this.config)
  }

  /** A viem client of the chain, created at first use. Throws `rpc_url_missing` if the chain has no built-in RPC. */
  get publicClient(): PublicClient {
    this.#publicClient ??= createRpcClient(this.config)
    return this.#publicClient
  }

  /** Throws `rpc_chain_mismatch` if the RPC serves another chain. Asks the RPC until it has named the right one. */
  async verifyChain(): Promise<void> {
    if (this.#isChainVerified) return
    await verifyChainId(this.publicClient, this.config.chainId)
    this.#isChainVerified = true
  }

  /**
   * Builds and signs a transaction, checks the signature and broadcasts it. Rejects with `wallet_not_ready` if the user has no
   * wallet. If an error has `signed`, the transaction was signed: look for its hash before you call again. With `wallet`, such as
   * the one that the user confirmed, only that wallet pays.
   *
   * @example
   * const { txHash, attestationSlug } = await client.signAndSend({ to: '0x…', value: '0.01' })
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
   * Signs a message (EIP-191) and checks the signature. The proof doesn't show the message: store the opening, which is returned
   * once.
   *
   * @example
   * const { signature, opening } = await client.signMessage({ message: 'I agree.' })
   */
  async signMessage(request: SignMessageRequest, options?: SignOffChainOptions): Promise<SignOffChainResult> {
    return (await loadOffChain()).signMessage(this, request, options)
  }

  /** Signs typed data (EIP-712, for the client's chain or for none) and checks the signature. Store the opening, as for a message. */
  async signTypedData(request: SignTypedDataRequest, options?: SignOffChainOptions): Promise<SignOffChainResult> {
    return (await loadOffChain()).signTypedData(this, request, options)
  }

  /** Signs an authorization (EIP-7702, for the client's chain) and checks the signature. All of it becomes public. */
  async signAuthorization(
    request: SignAuthorizationRequest,
    options?: SignOffChainOptions,
  ): Promise<SignAuthorizationResult> {
    return (await loadOffChain()).signAuthorization(this, request, options)
  }

  /**
   * Throws `opening_mismatch` unless the opening belongs to this proof. The proof is the service's claim: only a verifier checks the
   * receipt on IPFS and the event on the chain.
   *
   * @example
   * await client.verifyOpening(await client.api.getProof(attestationSlug), opening)
   */
  async verifyOpening(proof: ProofPayload, opening: Opening): Promise<void> {
    ;(await loadOffChain()).verifyOpening(proof, opening)
  }

  /**
   * The address that starts a sign-in by full-page navigation. The user returns to `returnTo`, on an allowed origin. An address of
   * more than 2048 characters, which the service rejects, loses its query and fragment.
   */
  loginUrl({ provider = '', returnTo }: LoginOptions & { returnTo?: string | undefined } = {}): string {
    const url = `${this.config.apiBaseUrl}/auth${provider && `/${encodeURIComponent(provider)}`}`
    if (returnTo === undefined) return url
    const page = returnTo.length > MAX_RETURN_TO_LENGTH ? returnTo.replace(/[?#].*/, '') : returnTo
    return `${url}?return_to=${encodeURIComponent(page)}`
  }
}

/** Loaded at first use, so that apps that only send transactions stay small. A new release of the app may have removed the old file. */
function loadOffChain() {
  return import('./signOffChain.ts').catch((cause: unknown) => {
    throw createError('network_unreachable', 'a part of the page is gone', { details: 'reload the page', cause })
  })
}
