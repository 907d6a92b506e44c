import {
  type Endpoint,
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  okResponse,
  type PathArguments,
  type ProofPayload,
  proofPayload,
  ServiceError,
  type SessionUser,
  type SignDigestRequest,
  type SignDigestResponse,
  sessionUser,
  signDigestResponse,
  type TransactionSummary,
  toMethodAndPath,
  transactionPage,
  type WalletInfo,
  type WalletUse,
  walletInfo,
} from '@countersign/protocol'
import { checked, type Schema } from '@countersign/protocol/schema'
import { type RequestOptions, request, type ServiceAddress } from './request.ts'

/** A page of the history. The caller may change the list. */
export type TransactionPage = { transactions: TransactionSummary[]; nextCursor: string | null }

/** The service's HTTP interface, one function for each endpoint. All reject with a `ServiceError`. */
export type ServiceApi = {
  /** The user who is signed in; null on 401. */
  me(): Promise<SessionUser | null>
  /** The user's wallet; null on 404. */
  getWallet(): Promise<WalletInfo | null>
  /** Creates the wallet. Idempotent. */
  provisionWallet(): Promise<WalletInfo>
  /** Signs the digest of a transaction, with the user's own wallet or with a vault. The signature becomes public with its proof, broadcast or not. */
  signDigest(request: SignDigestRequest & WalletUse): Promise<SignDigestResponse>
  /** The public proof of a signature. An abort rejects with the signal's reason. */
  getProof(slug: string, options?: { signal?: AbortSignal | undefined }): Promise<ProofPayload>
  /** The user's signatures, newest first. */
  listTransactions(options?: { cursor?: string | undefined; limit?: number | undefined }): Promise<TransactionPage>
  /** Ends the session. Also resolves without a session. */
  logout(): Promise<void>
}

/** Calls the service by the names of its endpoints. */
export function createCall(config: ServiceAddress) {
  return <Name extends Endpoint>(
    endpoint: Name,
    schema: Schema<EndpointResponse<Name>>,
    options?: RequestOptions & { query?: EndpointQuery<Name>; body?: EndpointRequest<Name> },
    ...parameters: PathArguments<Name>
  ) => request(config, { ...toMethodAndPath(endpoint, ...parameters), schema, ...options })
}

export function createApi(config: ServiceAddress): ServiceApi {
  const call = createCall(config)
  return {
    me: () => orNull(401, call('GET /auth/me', sessionUser)),

    getWallet: () => orNull(404, call('GET /wallet/me', walletInfo)),

    provisionWallet: () => call('POST /wallet/provision', walletInfo),

    signDigest: (body) => call('POST /sign/digest', signDigestResponse, { body }),

    async getProof(slug, { signal } = {}) {
      // Rejects the proof of another signature.
      const requestedProof = checked(proofPayload, (proof) => proof.slug === slug)
      return call('GET /proof/:slug', requestedProof, { signal, credentials: 'same-origin' }, { slug })
    },

    listTransactions: (query = {}) =>
      call('GET /wallet/transactions', transactionPage, { query }) as Promise<TransactionPage>,

    async logout() {
      await orNull(401, call('POST /auth/logout', okResponse))
    },
  }
}

async function orNull<R>(status: number, answer: Promise<R>): Promise<R | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ServiceError && error.status === status) return null
    throw error
  }
}
