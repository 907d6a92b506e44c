import {
  assertInclusion,
  formatTlogProof,
  hashLogEntry,
  parseCheckpoint,
  parseNote,
  type TlogProof,
} from '@countersign/log'
import { hashLeaf, type StatementV2, toHex } from '@countersign/protocol'
import {
  assemble,
  assembleAttestation,
  assembleBatch,
  assembleRelease,
  assertBlockSize,
  canonicalBytes,
  encodeBlock,
  toCid,
} from '@countersign/receipt'
import type { PinRecords, PinWork, ReleaseRecords } from '../store/findPins.ts'
import type { PinningStore } from '../store/pinning.ts'
import type { Block } from './ipfs/pinner.ts'

/** The blocks of a proof: its receipt, the collateral, and the others that it names, each before the one that names it. */
export type ReceiptBlocks = { receipt: Block; collateral: Block; others: readonly Block[] }

/** The blocks that proofs of one release share. */
type ReleaseBlocks = Record<'batch' | 'collateral' | 'coordinator' | 'release', Block>

/**
 * A pure function of what the signing transaction stored. Throws `ReceiptError`, such as `receipt_too_large`. A caller with many proofs of
 * one release may keep its blocks.
 */
export function assembleReceipt(
  { records }: Pick<PinWork, 'records'>,
  toBlocks: (release: ReleaseRecords) => ReleaseBlocks = assembleReleaseBlocks,
): ReceiptBlocks {
  if (records.version === 2) return assembleVersion2(records, toBlocks(records.release))
  const { version: _, collateral: bytes, ...parts } = records
  const collateral = toBlock(bytes)
  const receipt = assemble({ ...parts, batch: { ...parts.batch, collateral: collateral.cid } })
  return { receipt: toBlock(canonicalBytes(receipt)), collateral, others: [] }
}

/** The same without the receipt, which is most of the work. */
export function assembleNamedBlocks(
  { records }: Pick<PinWork, 'records'>,
  toBlocks: (release: ReleaseRecords) => ReleaseBlocks = assembleReleaseBlocks,
): Omit<ReceiptBlocks, 'receipt'> {
  if (records.version === 1) return { collateral: toBlock(records.collateral), others: [] }
  return listVersion2(records.policy && toBlock(records.policy), toBlocks(records.release))
}

function listVersion2(policy: Block | undefined, { batch, collateral, coordinator, release }: ReleaseBlocks) {
  return { collateral, others: [...(policy ? [policy] : []), batch, coordinator, release] }
}

function assembleReleaseBlocks(records: ReleaseRecords): ReleaseBlocks {
  assertBlockSize(records.collateral)
  assertBlockSize(records.coordinator)
  const batch = toBlock(encodeBlock('batch', assembleBatch(records.batch)))
  const collateral = toBlock(records.collateral)
  const coordinator = toBlock(records.coordinator)
  const released = { batch: batch.cid, collateral: collateral.cid, coordinator: coordinator.cid }
  const release = toBlock(encodeBlock('release', assembleRelease({ ...released, signatures: records.signatures })))
  return { batch, collateral, coordinator, release }
}

/** Makes the blocks of a release once for all proofs that were found together. */
export function createReleaseAssembler(): (records: ReleaseRecords) => ReleaseBlocks {
  const releases = new WeakMap<ReleaseRecords, ReleaseBlocks>()
  return (records) => {
    const blocks = releases.get(records) ?? assembleReleaseBlocks(records)
    releases.set(records, blocks)
    return blocks
  }
}

function assembleVersion2(records: PinRecords & { version: 2 }, shared: ReleaseBlocks): ReceiptBlocks {
  const { signed, statement, inclusion, entropy } = records
  const { batch, release } = shared
  const policy = records.policy && toBlock(records.policy)
  if (records.log !== undefined) assertInLog(records.log, statement)
  const attestation = {
    ...{ signed, statement, inclusion, batch: batch.cid, release: release.cid, entropy },
    ...{ policy: policy?.cid, approvals: records.approvals, log: records.log && formatTlogProof(records.log) },
  }
  return {
    receipt: toBlock(encodeBlock('attestation', assembleAttestation(attestation))),
    ...listVersion2(policy, shared),
  }
}

/** A receipt is public for good: what the rows give must prove that the entry of this statement is in the log. */
function assertInLog({ index, proof, checkpoint }: TlogProof, statement: StatementV2): void {
  const { keyId, signedAt } = statement
  const leaf = toHex(hashLeaf(statement))
  const { size, root } = parseCheckpoint(parseNote(checkpoint).text)
  const entry = hashLogEntry({ kind: 'signature', keyId, leaf, timeMs: Date.parse(signedAt) })
  assertInclusion({ leaf: entry, index, size, root, proof })
}

/** Bytes under the CID that is computed here. */
export function toBlock(bytes: Uint8Array<ArrayBuffer>): Block {
  return { cid: toCid(bytes), bytes }
}

/** The receipt that a proof's rows give today, which may not be the one that was published. Undefined where there is no such proof. */
export type RebuildReceipt = (slug: string) => Promise<Block | undefined>

export function createRebuildReceipt({ findPin }: Pick<PinningStore, 'findPin'>): RebuildReceipt {
  const toReleaseBlocks = createReleaseAssembler()
  return async (slug) => {
    const work = await findPin(slug)
    return work && assembleReceipt(work, toReleaseBlocks).receipt
  }
}
