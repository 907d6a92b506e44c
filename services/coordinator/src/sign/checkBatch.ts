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

/** The batch that a quote covers, and the collateral used to verify it. */
export type VerifiedBatch = Omit<
  SigningBatch,
  'collateral' | 'selfAttestation' | 'coordinatorMode' | 'release' | 'log'
> & {
  collateral: { bytes: Uint8Array; hash: string }
  /** Present if a release was requested. */
  begun?: BegunRelease | undefined
}

type BatchUse = {
  at: SigningTimes
  /** True if the batch contains signings of version 2, which need a release. */
  isReleased: boolean
  /** The verifier key of the log that contains the batch. */
  logKey?: string | undefined
}

/** Step 4 of signing. Throws the errors of `checkBatch`, and `collateral_stale`. */
export type BatchVerifier = (batch: SignedBatch, terms: EnclaveTerms, use: BatchUse) => Promise<VerifiedBatch>

/** Calls that share a quote are answered at about the same time, so a few remembered batches are enough. */
const MAX_KNOWN = 4

/** Several calls may share one quote. The verifier checks it once and returns the same object to all of them. */
export function createBatchVerifier(deps: BatchVerifierDeps): BatchVerifier {
  let known: (BatchKey & { verified: Promise<VerifiedBatch> })[] = []
  return (batch, terms, { at: times, ...use }) => {
    // Evidence is valid from and to whole seconds. With times rounded to seconds, calls that share a quote share the result.
    const at = { first: Math.floor(times.first / 1000) * 1000, last: Math.ceil(times.last / 1000) * 1000 }
    const verification = { batch, terms, at, logKey: use.logKey }
    const earlier = known.find((one) => isSame(one, verification))
    if (earlier !== undefined) return earlier.verified
    const verified = verifyBatch(deps, { batch, terms, use: { at, ...use } })
    known = [...known, { ...verification, verified }].slice(-MAX_KNOWN)
    verified.catch(() => {
      known = known.filter((one) => one.verified !== verified)
    })
    return verified
  }
}

/** Everything the result depends on. Batches that differ in any of it are verified separately. */
type BatchKey = { batch: SignedBatch; terms: EnclaveTerms } & Pick<BatchUse, 'at' | 'logKey'>

function isSame(left: BatchKey, right: BatchKey): boolean {
  return (
    left.at.first === right.at.first &&
    left.at.last === right.at.last &&
    left.logKey === right.logKey &&
    isSameBatch(left.batch, right.batch) &&
    // The terms of an enclave are the same objects until it attests itself again.
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
  /** The signing times from the statements. Verifiers check the quote at these times. */
  at: SigningTimes
}

/** Milliseconds of the earliest and the latest signature. */
export type SigningTimes = { first: number; last: number }

/**
 * Step 4 of signing: the quote is genuine, comes from a trusted enclave and covers this batch. No signature of the batch may be released
 * before. The returned quote has no trailing zeros: quoting services append them, no signature covers them, and anyone who handles the answer
 * could add some and so change the receipt. Throws `attestation_invalid`, or `collateral_stale` if the collateral has expired.
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
    // Before `notAfter` the result is the same. After it, the verifier names the part that has expired.
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
      isStale ? 'the collateral has expired' : 'the enclave’s quote is not accepted',
      { details: cause.code, cause },
    )
  }
}

/** The root of a batch's tree. Throws `attestation_invalid` for malformed leaves. */
export function hashLeaves(leaves: readonly string[]): string {
  // An empty tree has a root in RFC 6962, but an empty batch is never quoted.
  if (leaves.length === 0 || !leaves.every((leaf) => isHex(leaf, 32))) {
    throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', { details: 'leaves' })
  }
  const tree = createTreeEdge({ size: 0, hashes: [] })
  for (const leaf of leaves) tree.append(leaf)
  return tree.computeRoot()
}

/** The parts of a batch that a release covers. */
export type Releasable = Pick<
  SigningBatch,
  'quote' | 'eventLog' | 'config' | 'settings' | 'bootId' | 'sequence' | 'previous' | 'leaves' | 'logKey'
> & { collateral: { bytes: Uint8Array; hash: string } }

/** A release that is not yet given out, and the batch it was computed from. */
type BegunRelease = { batch: Releasable; coordinator: Uint8Array; release: Promise<Release> }

/** A verified batch, and the release that was computed meanwhile. */
type Verified = Releasable & { begun?: BegunRelease | undefined }

export type Releaser = ReturnType<typeof createReleaser>

/**
 * Creates releases of version 2: both keys of the coordinator sign the batch, the collateral used to verify its quote, and the coordinator's
 * attestation. All signings of a batch in this process share one release, because an ML-DSA-65 signature takes milliseconds. If two processes
 * make one, the store keeps the first.
 */
export function createReleaser(selfReport: Pick<SelfReport, 'current' | 'publicKey' | 'sign' | 'signMlDsa65'>) {
  const known = new WeakMap<Verified, BegunRelease>()

  async function make(batch: Releasable, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
    const { quote, eventLog, config, settings, bootId, sequence, previous, leaves, logKey, collateral } = batch
    const quoteHex = toHex(quote)
    const record = { quoteHex, eventLog, config, settings, bootId, sequence, previous, treeSize: leaves.length, logKey }
    // The codecs of the other blocks reject such a size.
    assertBlockSize(collateral.bytes)
    // Equals the bytes of `toBlockRelease`, with the faster SHA-256 and without parsing CIDs.
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
    // `release` reports the failure. A rejected batch needs no release.
    release.catch(() => {})
    return { batch, coordinator, release }
  }

  return {
    /** Computes a release while the batch is being verified, which takes about as long. Only `release` returns it, for the verified batch. */
    begin: (batch: Releasable): BegunRelease => begin(batch, selfReport.current().coordinator),
    release(batch: Verified, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
      // The verifier removes trailing zeros from the quote, and the attestation may have been renewed meanwhile.
      const isOfThis = (begun: BegunRelease | undefined) =>
        begun?.coordinator === coordinator && begun.batch.quote.length === batch.quote.length
      const begun = [known.get(batch), batch.begun].find(isOfThis) ?? begin(batch, coordinator)
      known.set(batch, begun)
      return begun.release
    },
  }
}
