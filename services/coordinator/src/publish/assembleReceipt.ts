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

/** The blocks that a receipt names. Each comes before the block that names it. */
type NamedBlocks = { collateral: Block; others: readonly Block[] }

export type ReceiptBlocks = NamedBlocks & { receipt: Block }

/** The blocks that proofs of one release share. */
type ReleaseBlocks = Record<'batch' | 'collateral' | 'coordinator' | 'release', Block>

/**
 * Assembles a receipt from the stored records only. Throws `ReceiptError`, such as `receipt_too_large`. A caller with many proofs of one
 * release can cache its blocks with `toBlocks`.
 */
export function assembleReceipt(
  { records }: Pick<PinWork, 'records'>,
  toBlocks: (release: ReleaseRecords) => ReleaseBlocks = assembleReleaseBlocks,
): ReceiptBlocks {
  if (records.version === 1) {
    const { version: _, collateral: bytes, ...parts } = records
    const collateral = toBlock(bytes)
    const receipt = assemble({ ...parts, batch: { ...parts.batch, collateral: collateral.cid } })
    return { receipt: toBlock(canonicalBytes(receipt)), collateral, others: [] }
  }
  const shared = toBlocks(records.release)
  return { receipt: assembleVersion2(records, shared), ...listNamed(records, shared) }
}

/** Like `assembleReceipt`, but skips the receipt, which is most of the work. */
export function assembleNamedBlocks(
  { records }: Pick<PinWork, 'records'>,
  toBlocks: (release: ReleaseRecords) => ReleaseBlocks = assembleReleaseBlocks,
): NamedBlocks {
  if (records.version === 1) return { collateral: toBlock(records.collateral), others: [] }
  return listNamed(records, toBlocks(records.release))
}

type Version2 = PinRecords & { version: 2 }

function listNamed({ policy }: Version2, { batch, collateral, coordinator, release }: ReleaseBlocks): NamedBlocks {
  return { collateral, others: [...(policy ? [toBlock(policy)] : []), batch, coordinator, release] }
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

/** Assembles the blocks of a release once for all proofs that were read together. */
export function createReleaseAssembler(): (records: ReleaseRecords) => ReleaseBlocks {
  const releases = new WeakMap<ReleaseRecords, ReleaseBlocks>()
  return (records) => {
    const blocks = releases.get(records) ?? assembleReleaseBlocks(records)
    releases.set(records, blocks)
    return blocks
  }
}

function assembleVersion2(records: Version2, { batch, release }: ReleaseBlocks): Block {
  const { signed, statement, inclusion, entropy, approvals, log } = records
  if (log !== undefined) assertInLog(log, statement)
  const attestation = assembleAttestation({
    signed,
    statement,
    inclusion,
    batch: batch.cid,
    release: release.cid,
    entropy,
    approvals,
    policy: records.policy && toCid(records.policy),
    log: log && formatTlogProof(log),
  })
  return toBlock(encodeBlock('attestation', attestation))
}

/** A receipt can't be withdrawn, so this checks that its proof shows the statement's entry in the log. */
function assertInLog({ index, proof, checkpoint }: TlogProof, statement: StatementV2): void {
  const { keyId, signedAt } = statement
  const leaf = toHex(hashLeaf(statement))
  const { size, root } = parseCheckpoint(parseNote(checkpoint).text)
  const entry = hashLogEntry({ kind: 'signature', keyId, leaf, timeMs: Date.parse(signedAt) })
  assertInclusion({ leaf: entry, index, size, root, proof })
}

/** Computes the CID of the bytes. */
export function toBlock(bytes: Uint8Array<ArrayBuffer>): Block {
  return { cid: toCid(bytes), bytes }
}

/** Rebuilds a receipt from the database. It may differ from the published one. Undefined if there is no such proof. */
export type RebuildReceipt = (slug: string) => Promise<Block | undefined>

export function createRebuildReceipt({ findPin }: Pick<PinningStore, 'findPin'>): RebuildReceipt {
  const toReleaseBlocks = createReleaseAssembler()
  return async (slug) => {
    const work = await findPin(slug)
    return work && assembleReceipt(work, toReleaseBlocks).receipt
  }
}
