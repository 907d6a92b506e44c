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
  parseProofPayload,
  parseSessionUser,
  parseSignDigestAnswer,
  parseTransactionPage,
  parseWalletInfo,
} from './parseResources.ts'
import { request } from './request.ts'

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
  return {
    me: () => orNull(401, request(apiBaseUrl, { method: 'GET', path: '/auth/me', parse: parseSessionUser })),

    getWallet: () => orNull(404, request(apiBaseUrl, { method: 'GET', path: '/wallet/me', parse: parseWalletInfo })),

    provisionWallet: () => request(apiBaseUrl, { method: 'POST', path: '/wallet/provision', parse: parseWalletInfo }),

    signDigest: ({ digest, txMetadata }) => {
      const body = { digest, txMetadata }
      return request(apiBaseUrl, { method: 'POST', path: '/sign/digest', body, parse: parseSignDigestAnswer })
    },

    async getProof(slug, { signal } = {}) {
      if (typeof slug !== 'string' || slug === '' || slug === '.' || slug === '..') {
        throw createError('invalid_request', 'a proof is asked for by its slug')
      }
      const parse = (body: unknown) => {
        const proof = parseProofPayload(body)
        // The proof of another signature must never pass for this one.
        return proof?.slug === slug ? proof : undefined
      }
      const path = `/proof/${encodeURIComponent(slug)}`
      return request(apiBaseUrl, { method: 'GET', path, parse, signal, isPublic: true })
    },

    listTransactions({ cursor, limit } = {}) {
      const query = new URLSearchParams()
      if (cursor !== undefined) query.set('cursor', cursor)
      if (limit !== undefined) query.set('limit', String(limit))
      const path = query.size === 0 ? '/wallet/transactions' : `/wallet/transactions?${query}`
      return request(apiBaseUrl, { method: 'GET', path, parse: parseTransactionPage })
    },

    async logout() {
      const parse = (body: unknown) => (isObject(body) && body.ok === true ? true : undefined)
      await orNull(401, request(apiBaseUrl, { method: 'POST', path: '/auth/logout', parse }))
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
