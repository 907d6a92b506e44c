import { hash } from 'node:crypto'
import { assertQuotePolicy, type Collateral, type Verifier } from '@countersign/attestation'
import {
  computeTdxReportData,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  isHex,
  ServiceError,
  type SignedBatch,
  toHex,
  toReleaseMessageV2,
} from '@countersign/protocol'
import { assembleBatch, assertBlockSize, encodeBlock } from '@countersign/receipt'
import { createTreeEdge } from '@countersign/service/hexTree'
import { CoordinatorError } from '../errors.ts'
import type { Release, SigningBatch } from '../store/batches.ts'
import type { CollateralStore, PlatformReader } from './enclave/collateral/collateralStore.ts'
import type { SelfReport } from './enclave/health/selfReport.ts'
import type { EnclavePolicy, EnclaveTerms } from './enclave/keyEnclave.ts'

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
  const named = { bootId, sequence, previous, leaves, eventLog, ...(logKey && { logKey }) }
  const shared = { ...named, config, settings, collateral: stored }
  const begun = use.isReleased ? deps.releaser.begin({ ...shared, quote }) : undefined
  const verdict = await checkBatch({ ...deps, at: use.at }, { batch, config, collateral })
  return { ...verdict, ...shared, begun }
}

export type CheckBatchDeps = {
  verifier: Verifier
  policy: EnclavePolicy
  /** When the signatures were made, by their statements: verifiers judge the quote at those times. */
  at: SigningTimes
}

/** Milliseconds of the earliest and the latest. */
export type SigningTimes = { first: number; last: number }

/**
 * Step 4 of signing: the quote is genuine and of an enclave we trust, and it covers this batch. Only after that may a signature
 * of the batch be released. The quote comes back without the zeros that quoting services put after it: nothing signs them, so
 * that whoever handles the answer could add some, and the same signature would have another receipt. Throws `attestation_invalid`, or
 * `collateral_stale` when it is the collateral that has lapsed.
 */
export async function checkBatch(
  { verifier, policy, at }: CheckBatchDeps,
  { batch, config, collateral }: { batch: SignedBatch; config: EnclaveConfig; collateral: Collateral },
): Promise<Pick<SigningBatch, 'mode' | 'tcbStatus' | 'measurement' | 'quote'>> {
  const { configHashes, commitments: _, ...quotePolicy } = policy
  try {
    const configHash = hashEnclaveConfig(config)
    if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
      throw new CoordinatorError('attestation_invalid', 'the enclave has another configuration')
    }
    const root = hashLeaves(batch.leaves)
    const reportData = computeTdxReportData({
      treeSize: batch.leaves.length,
      root: fromHex(root),
      bootId: fromHex(batch.bootId),
      batchSequence: batch.sequence,
      previousBatchHash: fromHex(batch.previous),
      configHash,
    })
    const evidence = {
      quote: Buffer.from(batch.quote, 'hex'),
      collateral,
      ...(batch.eventLog === undefined ? {} : { eventLog: batch.eventLog }),
    }
    const verified = await verifier.verifyQuote({ ...evidence, at: new Date(at.first) })
    // Until then the verdict is the same. For a later time it says what has lapsed.
    if (at.last > verified.validity.notAfter) await verifier.verifyQuote({ ...evidence, at: new Date(at.last) })
    assertQuotePolicy(verified, { ...quotePolicy, reportData })
    const [rtmr0, rtmr1, rtmr2, rtmr3] = verified.body.rtmrs.map(toHex) as [string, string, string, string]
    return {
      mode: verified.root.mode,
      tcbStatus: verified.tcb.status,
      measurement: { mrTd: toHex(verified.body.mrTd), rtmr0, rtmr1, rtmr2, rtmr3 },
      quote: evidence.quote.subarray(0, evidence.quote.length - verified.flags.trailingBytes),
    }
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause instanceof CoordinatorError) throw cause
    const isStale = cause.code.endsWith('_not_in_date')
    throw new CoordinatorError(
      isStale ? 'collateral_stale' : 'attestation_invalid',
      isStale ? 'the collateral has lapsed' : 'the enclave’s quote is not accepted',
      { details: cause.code, cause },
    )
  }
}

/** The root of a batch's tree. Throws `attestation_invalid` for leaves that are none. */
export function hashLeaves(leaves: readonly string[]): string {
  // An empty tree has a root in RFC 6962, but an empty batch is never quoted.
  if (leaves.length === 0 || !leaves.every((leaf) => isHex(leaf, 32))) {
    throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', { details: 'leaves' })
  }
  const tree = createTreeEdge({ size: 0, hashes: [] })
  for (const leaf of leaves) tree.append(leaf)
  return tree.computeRoot()
}

/** What a release is of. */
export type Releasable = Pick<
  SigningBatch,
  'quote' | 'eventLog' | 'config' | 'settings' | 'bootId' | 'sequence' | 'previous' | 'leaves' | 'logKey'
> & { collateral: { bytes: Uint8Array; hash: string } }

/** A release that nobody may have yet, and what it was made of. */
type BegunRelease = { batch: Releasable; coordinator: Uint8Array; release: Promise<Release> }

/** A batch whose quote is verified, with the release that was begun meanwhile. */
type Verified = Releasable & { begun?: BegunRelease | undefined }

export type Releaser = ReturnType<typeof createReleaser>

/**
 * Releases of version 2: both of the coordinator's keys sign for the batch, the collateral that its quote was verified with, and the
 * coordinator's attestation. One for all that this process commits of a batch, since signatures of ML-DSA-65 take milliseconds; the
 * store keeps the first, should two be made.
 */
export function createReleaser(selfReport: Pick<SelfReport, 'current' | 'publicKey' | 'sign' | 'signMlDsa65'>) {
  const known = new WeakMap<Verified, BegunRelease>()

  async function make(batch: Releasable, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
    const { quote, eventLog, config, settings, bootId, sequence, previous, leaves, logKey, collateral } = batch
    const quoteHex = toHex(quote)
    const record = { quoteHex, eventLog, config, settings, bootId, sequence, previous, treeSize: leaves.length, logKey }
    // The others have a codec, which refuses such a size.
    assertBlockSize(collateral.bytes)
    // The bytes of `toBlockRelease`, with the faster SHA-256 and without the way over CIDs.
    const message = toReleaseMessageV2({
      batchHash: hash('sha256', encodeBlock('batch', assembleBatch(record)), 'buffer'),
      collateralHash: Buffer.from(collateral.hash, 'hex'),
      coordinatorHash: hash('sha256', coordinator, 'buffer'),
    })
    const mlDsa65 = await selfReport.signMlDsa65(message)
    return { coordinatorKey: selfReport.publicKey, coordinator, ed25519: selfReport.sign(message), mlDsa65 }
  }

  function begin(batch: Releasable, coordinator: Uint8Array<ArrayBuffer>): BegunRelease {
    const release = make(batch, coordinator)
    // Whoever needs it is told; a batch that is refused needs none.
    release.catch(() => {})
    return { batch, coordinator, release }
  }

  return {
    /** Makes a release while the batch is being verified, which takes as long. Only `release` gives it away, for the verified batch. */
    begin: (batch: Releasable): BegunRelease => begin(batch, selfReport.current().coordinator),
    release(batch: Verified, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
      // The verifier takes off zeros after the quote, and the report may be a new one by now.
      const isOfThis = (begun: BegunRelease | undefined) =>
        begun?.coordinator === coordinator && begun.batch.quote.length === batch.quote.length
      const begun = [known.get(batch), batch.begun].find(isOfThis) ?? begin(batch, coordinator)
      known.set(batch, begun)
      return begun.release
    },
  }
}
