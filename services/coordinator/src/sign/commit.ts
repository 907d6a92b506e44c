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

/** A signature whose quote and owner are verified. It may be returned once it is stored. */
export type CommitJob = SignJob<'sample' | 'leaf' | 'checked' | 'verified' | 'log'>

/** The stored signing. It has no signature if its kind is off-chain or an address. */
export type Committed = Pick<StoredSigning, 'signature' | 'slug'> & {
  /** False if the database already had a signing of this digest. */
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
/** A transaction costs the database a millisecond or two at any size, so jobs that become ready meanwhile share the next one. */
const SLOTS = 1

/**
 * Step 5 of signing. Releases and stores, in one transaction, all jobs that became ready while earlier transactions ran. Returns the stored
 * signing; for a digest that was signed before, this is the earlier one.
 */
export function createCommitter(deps: CommitDeps): (job: CommitJob) => Promise<Committed> {
  const hashReport = createReportHasher()
  const gatherer = createGatherer<CommitJob, Committed>({
    async run(jobs, { answer }) {
      const ofBatches = Map.groupBy(jobs, ({ verified }) => verified)
      await Promise.all(
        [...ofBatches].flatMap(([batch, ofBatch]) =>
          // Several notes may cover the jobs of one quote.
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

/** For receipts of version 1. Caches by object, because a report stays the same object for hours. */
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
    // Verifiers reject a report that is newer than the signature. The coordinator may have renewed it since it called the enclave.
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
      // Receipts of version 1 have no field for a beacon, and the enclave refuses to sign them with one.
      if ('kind' in sample) throw new Error('a beacon for a receipt of version 1')
      // Equals the bytes of `toReceiptRelease`, with the faster SHA-256.
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

/** The commitment contains random bytes from the enclave, so an equal one means a replayed answer. */
function repeated() {
  return new CoordinatorError('attestation_invalid', 'the commitment was recorded before')
}

/** Another request stored this digest first and the row wasn't readable yet. A retry finds it. */
function unread() {
  return new CoordinatorError('database_unavailable', 'an earlier signature could not be read')
}

function tooOld() {
  return new CoordinatorError('attestation_invalid', 'the signature is older than the coordinator’s report')
}

const toKey = (walletId: string, digest: Hex) => `${walletId} ${digest}`
