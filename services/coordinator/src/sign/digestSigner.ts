import { CoordinatorError, toPublicCode } from '../errors.ts'
import { createGatherer } from './gather.ts'
import { type SignDeps, type SignDigestRequest, type SignDigestResult, signDigests } from './signDigest.ts'

/** What operators watch about signing. */
export type SigningMetrics = {
  /** How many signings went to the enclave in one call. */
  observeBatch(size: number): void
  /** How long a request for a signature took, by its outcome. */
  observeSigning(code: string, seconds: number): void
}

export type DigestSignerDeps = SignDeps & {
  metrics: SigningMetrics
  /** Requests in one batch, at most. */
  batchLimit: number
  /** Batches that wait for the enclave at one time; requests that come meanwhile gather. */
  enclaveSlots: number
}

export type DigestSigner = {
  signDigest(request: SignDigestRequest): Promise<SignDigestResult>
  /** Refuses new requests with `shutting_down`, and resolves when those under way have been answered. */
  stop(): Promise<void>
}

/** Signs digests in batches, and measures batches and requests. */
export function createDigestSigner(deps: DigestSignerDeps): DigestSigner {
  const { metrics } = deps
  const gatherer = createGatherer<SignDigestRequest, SignDigestResult>({
    run(requests, progress) {
      metrics.observeBatch(requests.length)
      return signDigests(deps, requests, progress)
    },
    keyOf: ({ walletId, digest }) => `${walletId} ${digest}`,
    limit: deps.batchLimit,
    slots: deps.enclaveSlots,
  })
  return {
    async signDigest(request) {
      const startedAt = performance.now()
      let code = 'ok'
      try {
        return await gatherer.add(request)
      } catch (error) {
        code = toPublicCode(error)
        throw error
      } finally {
        metrics.observeSigning(code, (performance.now() - startedAt) / 1000)
      }
    },
    stop: () => gatherer.stop(new CoordinatorError('shutting_down', 'the service is stopping')),
  }
}
