import {
  type Endpoint,
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  type PathArguments,
  type ProofPayload,
  ServiceError,
  type SessionUser,
  type SignDigestRequest,
  type SignDigestResponse,
  type TransactionPage,
  toMethodAndPath,
  type WalletInfo,
  type WalletUse,
} from '@countersign/protocol'
import {
  type Parse,
  parseOk,
  parseProofPayload,
  parseSessionUser,
  parseSignDigestResponse,
  parseTransactionPage,
  parseWalletInfo,
} from './parseResources.ts'
import { type RequestOptions, request } from './request.ts'

/** The service's HTTP interface, one function for each endpoint. All reject with a `ServiceError`. */
export type ServiceApi = {
  /** The user who is signed in; null on 401. */
  me(): Promise<SessionUser | null>
  /** The user's wallet; null on 404. */
  getWallet(): Promise<WalletInfo | null>
  /** Makes the wallet. Idempotent. */
  provisionWallet(): Promise<WalletInfo>
  /** Signs the digest of a transaction, with the user's own wallet or with a vault. The signature becomes public with its proof, broadcast or not. */
  signDigest(request: SignDigestRequest & WalletUse): Promise<SignDigestResponse>
  /** The public proof of a signature. An abort rejects with the signal's reason. */
  getProof(slug: string, options?: { signal?: AbortSignal | undefined }): Promise<ProofPayload>
  /** What the user has signed, newest first. */
  listTransactions(options?: { cursor?: string | undefined; limit?: number | undefined }): Promise<TransactionPage>
  /** Ends the session. Resolves as well where there was none. */
  logout(): Promise<void>
}

/** Calls of the service, by the names of its endpoints. */
export function createCall(apiBaseUrl: string) {
  return <Name extends Endpoint>(
    endpoint: Name,
    parse: Parse<EndpointResponse<Name>>,
    options?: RequestOptions & { query?: EndpointQuery<Name>; body?: EndpointRequest<Name> },
    ...parameters: PathArguments<Name>
  ) => request(apiBaseUrl, { ...toMethodAndPath(endpoint, ...parameters), parse, ...options })
}

export function createApi(apiBaseUrl: string): ServiceApi {
  const call = createCall(apiBaseUrl)
  return {
    me: () => orNull(401, call('GET /auth/me', parseSessionUser)),

    getWallet: () => orNull(404, call('GET /wallet/me', parseWalletInfo)),

    provisionWallet: () => call('POST /wallet/provision', parseWalletInfo),

    signDigest: (body) => call('POST /sign/digest', parseSignDigestResponse, { body }),

    async getProof(slug, { signal } = {}) {
      const parse = (body: unknown) => {
        const proof = parseProofPayload(body)
        // The proof of another signature must never pass for this one.
        return proof?.slug === slug ? proof : undefined
      }
      return call('GET /proof/:slug', parse, { signal, credentials: 'same-origin' }, { slug })
    },

    listTransactions: (query = {}) => call('GET /wallet/transactions', parseTransactionPage, { query }),

    async logout() {
      await orNull(401, call('POST /auth/logout', parseOk))
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
