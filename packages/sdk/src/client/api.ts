import {
  type Hex,
  type ProofPayload,
  ServiceError,
  type SessionUser,
  type TransactionPage,
  type TxMetadata,
  type WalletInfo,
} from '@countersign/protocol'
import { createError } from './errors.ts'
import {
  isObject,
  type Parse,
  parseProofPayload,
  parseSessionUser,
  parseSignDigestAnswer,
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
  /** Signs the digest of a transaction. The signature becomes public with its proof, broadcast or not. */
  signDigest(request: { digest: Hex; txMetadata: TxMetadata }): Promise<{ signature: Hex; slug: string }>
  /** The public proof of a signature. An abort rejects with the signal's reason. */
  getProof(slug: string, options?: { signal?: AbortSignal | undefined }): Promise<ProofPayload>
  /** What the user has signed, newest first. */
  listTransactions(options?: { cursor?: string | undefined; limit?: number | undefined }): Promise<TransactionPage>
  /** Ends the session. Resolves as well where there was none. */
  logout(): Promise<void>
}

export function createApi(apiBaseUrl: string): ServiceApi {
  const get = <R>(path: string, parse: Parse<R>, options?: RequestOptions) =>
    request(apiBaseUrl, { method: 'GET', path, parse, ...options })
  const post = <R>(path: string, parse: Parse<R>, body?: unknown) =>
    request(apiBaseUrl, { method: 'POST', path, parse, body })

  return {
    me: () => orNull(401, get('/auth/me', parseSessionUser)),

    getWallet: () => orNull(404, get('/wallet/me', parseWalletInfo)),

    provisionWallet: () => post('/wallet/provision', parseWalletInfo),

    signDigest: ({ digest, txMetadata }) => post('/sign/digest', parseSignDigestAnswer, { digest, txMetadata }),

    async getProof(slug, { signal } = {}) {
      // Dots would lead to another path, and half a surrogate pair has no place in any.
      if (typeof slug !== 'string' || /^\.{0,2}$|\p{Cs}/u.test(slug)) {
        throw createError('invalid_request', 'a proof is asked for by its slug')
      }
      const parse = (body: unknown) => {
        const proof = parseProofPayload(body)
        // The proof of another signature must never pass for this one.
        return proof?.slug === slug ? proof : undefined
      }
      return get(`/proof/${encodeURIComponent(slug)}`, parse, { signal, isPublic: true })
    },

    listTransactions({ cursor, limit } = {}) {
      const query = new URLSearchParams()
      if (cursor !== undefined) query.set('cursor', cursor)
      if (limit !== undefined) query.set('limit', String(limit))
      return get(query.size === 0 ? '/wallet/transactions' : `/wallet/transactions?${query}`, parseTransactionPage)
    },

    async logout() {
      await orNull(
        401,
        post('/auth/logout', (body) => (isObject(body) && body.ok === true ? true : undefined)),
      )
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
