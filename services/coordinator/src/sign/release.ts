import { hash } from 'node:crypto'
import { toHex, toReleaseMessageV2 } from '@countersign/protocol'
import { assembleBatch, assertBlockSize, encodeBlock } from '@countersign/receipt'
import type { SelfReport } from '../enclave/health/selfReport.ts'
import type { Release, SigningBatch } from '../store/batches.ts'

/** What a release is of. */
export type Releasable = Pick<
  SigningBatch,
  'quote' | 'eventLog' | 'config' | 'settings' | 'bootId' | 'sequence' | 'previous' | 'treeSize' | 'logKey'
> & { collateral: { bytes: Uint8Array; hash: string } }

/** A release that nobody may have yet, and what it was made of. */
export type BegunRelease = { batch: Releasable; coordinator: Uint8Array; release: Promise<Release> }

/** A batch whose quote is verified, with the release that was begun meanwhile. */
type Verified = Releasable & { begun?: BegunRelease | undefined }

export type Releaser = {
  /** Makes a release while the batch is being verified, which takes as long. Only `release` gives it away, for the verified batch. */
  begin(batch: Releasable): BegunRelease
  release(batch: Verified, coordinator: Uint8Array<ArrayBuffer>): Promise<Release>
}

/**
 * Releases of version 2: both of the coordinator's keys sign for the batch, the collateral that its quote was verified with, and the
 * coordinator's attestation. One for all that this process commits of a batch, since signatures of ML-DSA-65 take milliseconds; the
 * store keeps the first, should two be made.
 */
export function createReleaser(
  selfReport: Pick<SelfReport, 'current' | 'publicKey' | 'sign' | 'signMlDsa65'>,
): Releaser {
  const known = new WeakMap<Verified, BegunRelease>()

  async function make(batch: Releasable, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
    const { quote, eventLog, config, settings, bootId, sequence, previous, treeSize, logKey, collateral } = batch
    const record = {
      quoteHex: toHex(quote),
      eventLog,
      config,
      settings,
      bootId,
      sequence,
      previous,
      treeSize,
      logKey,
    }
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
    begin: (batch) => begin(batch, selfReport.current().coordinator),
    release(batch, coordinator) {
      // The verifier takes off zeros after the quote, and the report may be a new one by now.
      const isOfThis = (begun: BegunRelease | undefined) =>
        begun?.coordinator === coordinator && begun.batch.quote.length === batch.quote.length
      const begun = [known.get(batch), batch.begun].find(isOfThis) ?? begin(batch, coordinator)
      known.set(batch, begun)
      return begun.release
    },
  }
}
