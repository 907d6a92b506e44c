import { type Authorization, assertAuthorizationAllowed, isOffChain, ServiceError } from '@countersign/protocol'
import type { KeyEnclave } from '../enclave/keyEnclave.ts'
import { CoordinatorError, toPublicCode } from '../errors.ts'
import { createGatherer } from '../store/gather.ts'
import { countBytes, type SignJob, type SignResult } from './job.ts'
import { type SignDeps, signJobs } from './signJobs.ts'

/** What operators watch about signing. */
export type SigningMetrics = {
  /** How many signings went to the enclave in one call. */
  observeBatch(size: number): void
  /** How long a request for a signature took, by its outcome. */
  observeSigning(code: string, seconds: number): void
}

export type BatchSignerDeps = SignDeps & {
  enclave: Pick<KeyEnclave, 'getTerms'>
  metrics: SigningMetrics
  /** Requests in one batch, at most. */
  batchLimit: number
  /** Batches that wait for the enclave at one time; requests that come meanwhile gather. */
  enclaveSlots: number
}

export type BatchSigner = {
  sign(job: SignJob): Promise<SignResult>
  /** Refuses new requests with `shutting_down`, and resolves when those under way have been answered. */
  stop(): Promise<void>
}

/** What an enclave takes in one call, less what surrounds the items. */
const MAX_CALL_BYTES = 3_500_000

/** Signs in batches, whatever the kinds, and measures batches and requests. */
export function createBatchSigner(deps: BatchSignerDeps): BatchSigner {
  const { metrics } = deps
  const gatherer = createGatherer<SignJob, SignResult>({
    run(jobs, progress) {
      metrics.observeBatch(jobs.length)
      return signJobs(deps, jobs, progress)
    },
    // An opening is of one caller only. A job with other approvals may be answered otherwise.
    keyOf: ({ walletId, vault, asked }) =>
      isOffChain(asked) ? undefined : `${walletId} ${asked.digest} ${JSON.stringify(vault?.approvals)}`,
    limit: deps.batchLimit,
    // So that large ones of some callers do not make a call that the enclave refuses for all.
    weight: { of: countBytes, limit: MAX_CALL_BYTES },
    slots: deps.enclaveSlots,
  })
  return {
    async sign(job) {
      const startedAt = performance.now()
      let code = 'ok'
      try {
        const { asked } = job
        if (asked.kind === 'authorization') await assertAllowed(deps.enclave, asked.authorization)
        return await gatherer.add(job)
      } catch (error) {
        code = toPublicCode(error)
        throw error
      } finally {
        metrics.observeSigning(code, (performance.now() - startedAt) / 1000)
      }
    },
    async stop() {
      await gatherer.stop(new CoordinatorError('shutting_down', 'the service is stopping'))
      await deps.signLog?.stop()
    },
  }
}

/** The enclave refuses the others too, but by then a sample would be spent. */
async function assertAllowed(enclave: Pick<KeyEnclave, 'getTerms'>, authorization: Authorization): Promise<void> {
  const { settings } = await enclave.getTerms()
  try {
    assertAuthorizationAllowed(authorization, settings.implementations)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new CoordinatorError('authorization_not_allowed', error.message, { details: error.details })
  }
}
