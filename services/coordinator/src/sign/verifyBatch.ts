import type { SignedBatch } from '@countersign/protocol'
import type { CollateralStore } from '../enclave/collateral/collateralStore.ts'
import type { PlatformReader } from '../enclave/collateral/platformReader.ts'
import type { EnclaveTerms } from '../enclave/keyEnclave.ts'
import type { SigningBatch } from '../store/batches.ts'
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
  let known: (BatchKey & { verified: Promise<VerifiedBatch> })[] = []
  return (batch, terms, { at: times, ...use }) => {
    // Evidence begins and ends at whole seconds. BatchKey at these, calls that share a quote share the judgement.
    const at = { first: Math.floor(times.first / 1000) * 1000, last: Math.ceil(times.last / 1000) * 1000 }
    const judged = { batch, terms, at, logKey: use.logKey }
    const earlier = known.find((one) => isSame(one, judged))
    if (earlier !== undefined) return earlier.verified
    const verified = verifyBatch(deps, { batch, terms, use: { at, ...use } })
    known = [...known, { ...judged, verified }].slice(-MAX_KNOWN)
    verified.catch(() => {
      known = known.filter((one) => one.verified !== verified)
    })
    return verified
  }
}

/** All that goes into the judgement; two batches that differ in anything are two. */
type BatchKey = { batch: SignedBatch; terms: EnclaveTerms } & Pick<BatchUse, 'at' | 'logKey'>

function isSame(left: BatchKey, right: BatchKey): boolean {
  return (
    left.at.first === right.at.first &&
    left.at.last === right.at.last &&
    left.logKey === right.logKey &&
    isSameBatch(left.batch, right.batch) &&
    // An enclave's terms are the same objects until it attests itself again.
    left.terms.config === right.terms.config &&
    left.terms.settings === right.terms.settings &&
    left.terms.logs === right.terms.logs
  )
}

function isSameBatch(left: SignedBatch, right: SignedBatch): boolean {
  return (
    left.bootId === right.bootId &&
    left.sequence === right.sequence &&
    left.previous === right.previous &&
    left.quote === right.quote &&
    left.eventLog === right.eventLog &&
    left.leaves.length === right.leaves.length &&
    left.leaves.every((leaf, index) => leaf === right.leaves[index])
  )
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
