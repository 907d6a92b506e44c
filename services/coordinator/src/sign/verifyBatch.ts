import type { SignedBatch } from '@countersign/protocol'
import type { PlatformReader } from '../collateral/platformReader.ts'
import type { CollateralStore, EnclaveTerms } from '../ports.ts'
import type { SigningBatch } from '../store/types.ts'
import { type CheckBatchDeps, checkBatch, type SigningTimes } from './checkBatch.ts'
import type { BegunRelease, Releaser } from './release.ts'

export type BatchVerifierDeps = Pick<CheckBatchDeps, 'verifier' | 'policy'> & {
  collateral: Pick<CollateralStore, 'current'>
  readPlatform: PlatformReader
  releaser: Pick<Releaser, 'begin'>
}

/** What one quote covers, and the collateral that it was judged with. */
export type VerifiedBatch = Omit<
  SigningBatch,
  'collateral' | 'selfAttestation' | 'coordinatorMode' | 'release' | 'log'
> & {
  /** The leaf hashes, and the path of each. */
  leaves: readonly string[]
  paths: readonly (readonly string[])[]
  collateral: { bytes: Uint8Array; hash: string }
  /** Where one was asked for. */
  begun?: BegunRelease | undefined
}

type BatchUse = {
  at: SigningTimes
  /** With signings of version 2, which need a release of the batch. */
  isReleased: boolean
  /** The verifier key of the log that the batch is in. */
  logKey?: string | undefined
}

/** Step 4 of signing. Throws what `checkBatch` throws, and `collateral_stale`. */
export type BatchVerifier = (batch: SignedBatch, terms: EnclaveTerms, use: BatchUse) => Promise<VerifiedBatch>

/** Calls that share a quote are answered at the same time: after this many batches none is to be expected. */
const MAX_KNOWN = 4

/** Several calls may share one quote. It is verified once, and all of them get the same object. */
export function createBatchVerifier(deps: BatchVerifierDeps): BatchVerifier {
  const known = new Map<string, Promise<VerifiedBatch>>()
  return (batch, terms, { at: times, ...use }) => {
    // Evidence begins and ends at whole seconds. Judged at these, calls that share a quote share the judgement.
    const at = { first: Math.floor(times.first / 1000) * 1000, last: Math.ceil(times.last / 1000) * 1000 }
    // All that goes into the judgement; two batches that differ in anything are two.
    const key = JSON.stringify([batch, terms, at, use.logKey])
    const earlier = known.get(key)
    if (earlier !== undefined) return earlier
    const verified = verifyBatch(deps, { batch, terms, use: { at, ...use } })
    known.set(key, verified)
    verified.catch(() => known.delete(key))
    for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
    return verified
  }
}

async function verifyBatch(
  deps: BatchVerifierDeps,
  { batch, terms, use }: { batch: SignedBatch; terms: EnclaveTerms; use: BatchUse },
): Promise<VerifiedBatch> {
  const quote = Buffer.from(batch.quote, 'hex')
  const { collateral, ...stored } = await deps.collateral.current(deps.readPlatform(quote))
  const { config, settings } = terms
  const { leaves, eventLog, bootId, sequence, previous } = batch
  const { logKey } = use
  const named = { bootId, sequence, previous, treeSize: leaves.length, eventLog, ...(logKey && { logKey }) }
  const shared = { ...named, config, settings, collateral: stored }
  const begun = use.isReleased ? deps.releaser.begin({ ...shared, quote }) : undefined
  const verdict = await checkBatch({ ...deps, at: use.at }, { batch, config, collateral })
  return { ...verdict, ...shared, leaves, begun }
}
