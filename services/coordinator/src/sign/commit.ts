import { type Hex, SAMPLE_TOLERANCE_MS, type Statement, type TxMetadata } from '@countersign/protocol'
import { hashPart, toReceiptRelease, type Witness } from '@countersign/receipt'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Random, SelfReport, Store } from '../ports.ts'
import { createGatherer, type Progress } from './gather.ts'
import type { VerifiedBatch } from './verifyBatch.ts'

/** A signature that may be released once it is stored: its quote is verified, and it is of this wallet. */
export type VerifiedSigning = {
  batch: VerifiedBatch
  walletId: string
  txMetadata: TxMetadata
  statement: Statement
  leafIndex: number
  witness: Witness
}

export type Committed = { signature: Hex; slug: string }

export type CommitDeps = {
  store: Pick<Store, 'insertSignings'>
  selfReport: Pick<SelfReport, 'current' | 'sign' | 'mode'>
  clock: Clock
  random: Random
}

const LIMIT = 256
/** One writes while the next is made ready. More would only wait for the same disk. */
const SLOTS = 2

/**
 * Step 5 of signing: releases and stores, in one transaction, all that has become ready while earlier transactions were under way.
 * Returns what was committed, which for a digest that was signed before is the earlier signature.
 */
export function createCommitter(deps: CommitDeps): (signing: VerifiedSigning) => Promise<Committed> {
  const gatherer = createGatherer<VerifiedSigning, Committed>({
    async run(signings, { answer }) {
      const batches = new Set(signings.map(({ batch }) => batch))
      const ofBatch = (batch: VerifiedBatch) => signings.filter((signing) => signing.batch === batch)
      await Promise.all([...batches].map((batch) => commit(deps, batch, ofBatch(batch), answer)))
    },
    limit: LIMIT,
    slots: SLOTS,
  })
  return (signing) => gatherer.add(signing)
}

async function commit(
  deps: CommitDeps,
  batch: VerifiedBatch,
  asked: readonly VerifiedSigning[],
  answer: Progress<VerifiedSigning, Committed>['answer'],
) {
  try {
    const { leaves, paths, collateral, ...rest } = batch
    const { selfAttestation } = deps.selfReport.current()
    const hashes = {
      collateralHash: Buffer.from(collateral.hash, 'hex'),
      selfAttestationHash: hashPart(selfAttestation),
    }
    // Verifiers refuse a report that was made after the signature; this one may be new since the enclave was asked.
    const attestedAt = Date.parse(selfAttestation.fetchedAt)
    const isAttested = ({ statement }: VerifiedSigning) =>
      Date.parse(statement.signedAt) >= attestedAt - SAMPLE_TOLERANCE_MS
    for (const signing of asked) if (!isAttested(signing)) answer(signing, { status: 'rejected', reason: tooOld() })
    const signings = asked.filter(isAttested)
    if (signings.length === 0) return
    const committed = await deps.store.insertSignings({
      batch: { ...rest, collateral: collateral.bytes, selfAttestation, coordinatorMode: deps.selfReport.mode },
      signings: signings.map(({ walletId, txMetadata, statement, leafIndex, witness }) => {
        // The statement was held against it when it came.
        const leaf = Buffer.from(leaves[leafIndex] ?? '', 'hex')
        const release = deps.selfReport.sign(toReceiptRelease({ ...hashes, leaf, witness }))
        return {
          slug: Buffer.from(deps.random(16)).toString('base64url'),
          walletId,
          txMetadata,
          statement,
          leafIndex,
          path: paths[leafIndex] ?? [],
          witness,
          release: Buffer.from(release).toString('hex'),
        }
      }),
      now: deps.clock.now(),
    })
    const byKey = new Map(committed.map((row) => [toKey(row.walletId, row.digest), row]))
    for (const signing of signings) {
      const row = byKey.get(toKey(signing.walletId, signing.statement.digest))
      if (row === undefined) throw new Error('a signing was neither stored nor found')
      answer(signing, { status: 'fulfilled', value: { signature: row.signature, slug: row.slug } })
    }
  } catch (reason) {
    for (const signing of asked) answer(signing, { status: 'rejected', reason })
  }
}

function tooOld() {
  return new CoordinatorError('attestation_invalid', 'the signature is older than the coordinator’s report')
}

const toKey = (walletId: string, digest: Hex) => `${walletId} ${digest}`
