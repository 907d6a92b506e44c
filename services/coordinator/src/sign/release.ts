import { hash } from 'node:crypto'
import { toHex, toReleaseMessageV2 } from '@countersign/protocol'
import { assembleBatch, assertBlockSize, encodeBlock } from '@countersign/receipt'
import type { SelfReport } from '../ports.ts'
import type { Release } from '../store/types.ts'
import type { VerifiedBatch } from './verifyBatch.ts'

export type Releaser = (batch: VerifiedBatch, coordinator: Uint8Array<ArrayBuffer>) => Promise<Release>

/**
 * Releases of version 2: both of the coordinator's keys sign for the batch, the collateral that its quote was verified with, and the
 * coordinator's attestation. One for all that this process commits of a batch, since signatures of ML-DSA-65 take milliseconds; the
 * store keeps the first, should two be made.
 */
export function createReleaser(selfReport: Pick<SelfReport, 'publicKey' | 'sign' | 'signMlDsa65'>): Releaser {
  const known = new WeakMap<VerifiedBatch, { coordinator: Uint8Array; release: Promise<Release> }>()

  async function release(batch: VerifiedBatch, coordinator: Uint8Array<ArrayBuffer>): Promise<Release> {
    const { quote, eventLog, config, settings, bootId, sequence, previous, treeSize, collateral } = batch
    const record = { quoteHex: toHex(quote), eventLog, config, settings, bootId, sequence, previous, treeSize }
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

  return (batch, coordinator) => {
    const earlier = known.get(batch)
    if (earlier?.coordinator === coordinator) return earlier.release
    const made = release(batch, coordinator)
    known.set(batch, { coordinator, release: made })
    made.catch(() => known.delete(batch))
    return made
  }
}
