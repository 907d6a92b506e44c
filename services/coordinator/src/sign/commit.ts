import { type Hex, SAMPLE_TOLERANCE_MS, toReleaseMessage, toSignedDigest } from '@countersign/protocol'
import { hashPart, type SelfAttestation } from '@countersign/receipt'
import { CoordinatorError } from '../errors.ts'
import { createGatherer, type Progress } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { Signing, StoredSigning } from '../store/signings.ts'
import type { Clock, Random } from '../system.ts'
import type { Releaser, VerifiedBatch } from './checkBatch.ts'
import { hashWitnessFast } from './checkItem.ts'
import type { SelfReport } from './enclave/health/selfReport.ts'
import type { SignJob } from './job.ts'

/** A signature that may be answered once it is stored: its quote is verified, and it is of this wallet. */
export type CommitJob = SignJob<'sample' | 'leaf' | 'checked' | 'verified' | 'log'>

/** What is stored: of a kind that is off the chain, and of an address, no signature. */
export type Committed = Pick<StoredSigning, 'signature' | 'slug'> & {
  /** Whether this very signing is stored, and not an earlier one of the same digest. */
  isNew: boolean
}

export type CommitDeps = {
  store: Pick<Store, 'insertSignings'>
  selfReport: Pick<SelfReport, 'current' | 'sign' | 'mode'>
  clock: Clock
  random: Random
  releaser: Pick<Releaser, 'release'>
}

const LIMIT = 256
/** Each costs the database a millisecond or two whatever its size: those who become ready meanwhile are better off together. */
const SLOTS = 1

/**
 * Step 5 of signing: releases and stores, in one transaction, all that has become ready while earlier transactions were under way.
 * Returns what was committed, which for a digest that was signed before is the earlier signature.
 */
export function createCommitter(deps: CommitDeps): (job: CommitJob) => Promise<Committed> {
  const hashReport = createReportHasher()
  const gatherer = createGatherer<CommitJob, Committed>({
    async run(jobs, { answer }) {
      const ofBatches = Map.groupBy(jobs, ({ verified }) => verified)
      await Promise.all(
        [...ofBatches].flatMap(([batch, ofBatch]) =>
          // Several notes may cover what one quote does.
          [...Map.groupBy(ofBatch, ({ log }) => log?.note).values()].map((part) =>
            commit({ ...deps, hashReport }, batch, part, answer),
          ),
        ),
      )
    },
    limit: LIMIT,
    slots: SLOTS,
  })
  return (job) => gatherer.add(job)
}

/** For receipts of version 1. A report is the same object for hours. */
function createReportHasher(): (selfAttestation: SelfAttestation) => Uint8Array {
  const known = new WeakMap<SelfAttestation, Uint8Array>()
  return (selfAttestation) => {
    const hashed = known.get(selfAttestation) ?? hashPart(selfAttestation)
    known.set(selfAttestation, hashed)
    return hashed
  }
}

async function commit(
  deps: CommitDeps & { hashReport(selfAttestation: SelfAttestation): Uint8Array },
  batch: VerifiedBatch,
  jobs: readonly CommitJob[],
  answer: Progress<CommitJob, Committed>['answer'],
) {
  try {
    const { collateral, begun: _, ...rest } = batch
    const { selfAttestation, coordinator } = deps.selfReport.current()
    // Verifiers refuse a report that was made after the signature; this one may be new since the enclave was asked.
    const attestedAt = Date.parse(selfAttestation.fetchedAt)
    const isAttested = ({ checked }: CommitJob) =>
      Date.parse(checked.stated.statement.signedAt) >= attestedAt - SAMPLE_TOLERANCE_MS
    for (const job of jobs) if (!isAttested(job)) answer(job, { status: 'rejected', reason: tooOld() })
    const attested = jobs.filter(isAttested)
    if (attested.length === 0) return
    const isReleased = attested.some(({ checked }) => checked.stated.version === 2)
    const release = isReleased ? await deps.releaser.release(batch, coordinator) : undefined
    const [{ log }] = attested as [CommitJob]
    const rows = attested.map(({ walletId, checked: { stated }, leaf, sample, log }): Signing => {
      const slug = Buffer.from(deps.random(16)).toString('base64url')
      const row = { slug, walletId, leafIndex: leaf.index }
      if (stated.version === 2) return { ...row, ...stated, witness: sample, ...(log && { logIndex: log.index }) }
      // Its receipts have no place for one, and the enclave refuses to sign with it.
      if ('kind' in sample) throw new Error('a beacon for a receipt of version 1')
      // The bytes of `toReceiptRelease`, with the faster SHA-256.
      const message = toReleaseMessage({
        collateralHash: Buffer.from(collateral.hash, 'hex'),
        selfAttestationHash: deps.hashReport(selfAttestation),
        leaf: Buffer.from(leaf.hash, 'hex'),
        witnessHash: Buffer.from(hashWitnessFast(sample), 'hex'),
      })
      const signature = deps.selfReport.sign(message)
      return { ...row, ...stated, witness: sample, release: Buffer.from(signature).toString('hex') }
    })
    const committed = await deps.store.insertSignings({
      batch: {
        ...rest,
        collateral: collateral.bytes,
        selfAttestation,
        coordinatorMode: deps.selfReport.mode,
        ...(release && { release }),
        ...(log && { log: { origin: log.origin, note: log.note } }),
      },
      signings: rows,
      now: deps.clock.now(),
    })
    const bySlug = new Map(committed.map((row) => [row.slug, row]))
    const byKey = new Map(committed.flatMap((row) => (row.digest ? [[toKey(row.walletId, row.digest), row]] : [])))
    for (const [index, job] of attested.entries()) {
      const { stated } = job.checked
      const digest = stated.version === 1 ? stated.statement.digest : toSignedDigest(stated.signed)
      const earlier = digest && byKey.get(toKey(job.walletId, digest))
      const offered = rows[index]?.slug ?? ''
      const row = earlier ?? bySlug.get(offered)
      if (row !== undefined) {
        const { signature, slug } = row
        answer(job, { status: 'fulfilled', value: { signature, slug, isNew: slug === offered } })
      } else answer(job, { status: 'rejected', reason: digest === null ? repeated() : unread() })
    }
  } catch (reason) {
    for (const job of jobs) answer(job, { status: 'rejected', reason })
  }
}

/** Random bytes of the enclave are in a commitment: an answer was repeated. */
function repeated() {
  return new CoordinatorError('attestation_invalid', 'the commitment was recorded before')
}

/** Another was first with this digest, and could not be read: asked again, it is found. */
function unread() {
  return new CoordinatorError('database_unavailable', 'an earlier signature could not be read')
}

function tooOld() {
  return new CoordinatorError('attestation_invalid', 'the signature is older than the coordinator’s report')
}

const toKey = (walletId: string, digest: Hex) => `${walletId} ${digest}`
