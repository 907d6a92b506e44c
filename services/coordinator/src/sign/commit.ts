import { type Hex, SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import { hashPart, type SelfAttestation, toReceiptRelease } from '@countersign/receipt'
import { CoordinatorError } from '../errors.ts'
import { createGatherer, type Progress } from '../gather.ts'
import type { Clock, Random, SelfReport, Store } from '../ports.ts'
import { toDigest } from '../store/digest.ts'
import type { AnyWitness, Signing, StoredSigning } from '../store/types.ts'
import type { Stated } from './checkItem.ts'
import type { Releaser } from './release.ts'
import type { VerifiedBatch } from './verifyBatch.ts'

/** A signature that may be released once it is stored: its quote is verified, and it is of this wallet. */
export type VerifiedSigning = {
  batch: VerifiedBatch
  walletId: string
  stated: Stated
  leafIndex: number
  witness: AnyWitness
  /** Where the settings have a log: the entry, and the note that covers it. */
  log?: { origin: string; note: string; index: number }
}

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
export function createCommitter(deps: CommitDeps): (signing: VerifiedSigning) => Promise<Committed> {
  const hashReport = createReportHasher()
  const gatherer = createGatherer<VerifiedSigning, Committed>({
    async run(signings, { answer }) {
      const ofBatches = Map.groupBy(signings, ({ batch }) => batch)
      await Promise.all(
        [...ofBatches].flatMap(([batch, asked]) =>
          // Several notes may cover what one quote does.
          [...Map.groupBy(asked, ({ log }) => log?.note).values()].map((part) =>
            commit({ ...deps, hashReport }, batch, part, answer),
          ),
        ),
      )
    },
    limit: LIMIT,
    slots: SLOTS,
  })
  return (signing) => gatherer.add(signing)
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
  asked: readonly VerifiedSigning[],
  answer: Progress<VerifiedSigning, Committed>['answer'],
) {
  try {
    const { leaves, paths, collateral, begun: _, ...rest } = batch
    const { selfAttestation, coordinator } = deps.selfReport.current()
    // Verifiers refuse a report that was made after the signature; this one may be new since the enclave was asked.
    const attestedAt = Date.parse(selfAttestation.fetchedAt)
    const isAttested = ({ stated }: VerifiedSigning) =>
      Date.parse(stated.statement.signedAt) >= attestedAt - SAMPLE_TOLERANCE_MS
    for (const signing of asked) if (!isAttested(signing)) answer(signing, { status: 'rejected', reason: tooOld() })
    const signings = asked.filter(isAttested)
    if (signings.length === 0) return
    const isReleased = signings.some(({ stated }) => stated.version === 2)
    const release = isReleased ? await deps.releaser.release(batch, coordinator) : undefined
    const [{ log }] = signings as [VerifiedSigning]
    const rows = signings.map(({ walletId, stated, leafIndex, witness, log }): Signing => {
      const slug = Buffer.from(deps.random(16)).toString('base64url')
      const row = { slug, walletId, leafIndex, path: paths[leafIndex] ?? [] }
      if (stated.version === 2) return { ...row, ...stated, witness, ...(log && { logIndex: log.index }) }
      // Its receipts have no place for one, and the enclave refuses to sign with it.
      if ('kind' in witness) throw new Error('a beacon for a receipt of version 1')
      // The statement was held against it when it came.
      const leaf = Buffer.from(leaves[leafIndex] ?? '', 'hex')
      const hashes = {
        collateralHash: Buffer.from(collateral.hash, 'hex'),
        selfAttestationHash: deps.hashReport(selfAttestation),
      }
      const signature = deps.selfReport.sign(toReceiptRelease({ ...hashes, leaf, witness }))
      return { ...row, ...stated, witness, release: Buffer.from(signature).toString('hex') }
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
    for (const [index, signing] of signings.entries()) {
      const { stated } = signing
      const digest = stated.version === 1 ? stated.statement.digest : toDigest(stated.signed)
      const earlier = digest && byKey.get(toKey(signing.walletId, digest))
      const offered = rows[index]?.slug ?? ''
      const row = earlier ?? bySlug.get(offered)
      if (row !== undefined) {
        const { signature, slug } = row
        answer(signing, { status: 'fulfilled', value: { signature, slug, isNew: slug === offered } })
      } else answer(signing, { status: 'rejected', reason: digest === null ? repeated() : unread() })
    }
  } catch (reason) {
    for (const signing of asked) answer(signing, { status: 'rejected', reason })
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
