import { developmentSeed } from '@countersign/attestation/simulator'
import {
  appendLeaves,
  createInclusionProof,
  createLeafReader,
  emptyFrontier,
  encodeLogEntry,
  formatCheckpoint,
} from '@countersign/log'
import {
  type AttestationReceiptV2,
  checkpointTopic,
  concatBytes,
  type Hex,
  hashLeaf,
  hashTree,
  hashTreeLeaf,
  toCanonicalJson,
  toHex,
  toLogId,
  toSizeTopic,
} from '@countersign/protocol'
import {
  type AnchorBlock,
  type AnchoredReceipt,
  type AnchorPart,
  type ChainLog,
  type LogContract,
  nameSignature,
  readAnchor,
  toCid,
} from '@countersign/receipt'
import {
  createReceiptSimulator,
  createSimulatedLog,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
  type SimulatedLogOptions,
} from '@countersign/receipt/simulator'
import { sha256 } from '@noble/hashes/sha2.js'
import { goldenLog } from '../spec/tamperedLog.ts'

/* A log with three checkpoints on a chain, and a receipt in it (anchor-v1.md). */

export const ORIGIN = 'log.example/enclave-a'
export const OWNER: Hex = `0x${'0e'.repeat(20)}`
export const LOG_WITNESS: Hex = `0x${'1c'.repeat(20)}`
export const LOG_ID: Hex = toLogId(OWNER, sha256(new TextEncoder().encode(ORIGIN)))

const SIGNED_AT_MS = Date.parse('2026-06-15T12:00:00.123Z')
const hash = (text: string) => toHex(sha256(new TextEncoder().encode(text)))
const timeOf = (index: number) => SIGNED_AT_MS + (index - goldenIndex) * 250

/** The index of the golden receipt's entry. */
export const goldenIndex = 6

const toStatement = (kind: 'signature' | 'dropped' | 'unacknowledged', index: number, about = index) =>
  encodeLogEntry({ kind, keyId: hash(`key ${about}`).slice(0, 32), leaf: hash(`leaf ${about}`), timeMs: timeOf(index) })
const toTable = (index: number) =>
  encodeLogEntry({ kind: 'table', rows: index, root: hash(`table ${index}`), timeMs: timeOf(index) })

/** All entries but the golden receipt's. Each checkpoint ends with an entry of the table. */
const otherEntries: readonly Uint8Array[] = [
  encodeLogEntry({ kind: 'boot', bootId: hash('boot').slice(0, 32), configHash: hash('config'), timeMs: timeOf(0) }),
  toTable(1),
  toStatement('signature', 2),
  toTable(3),
  toStatement('signature', 4),
  toStatement('signature', 5),
  new Uint8Array(),
  toStatement('signature', 7),
  toStatement('dropped', 8, 7),
  toStatement('unacknowledged', 9, 4),
  toTable(10),
  toStatement('signature', 11),
  toTable(12),
  toStatement('signature', 13),
  toStatement('signature', 14),
  toTable(15),
]

/** Options of the golden receipt. Its own proof is in the tree of size 11. */
const anchoredLog: SimulatedLogOptions = { ...goldenLog, entries: otherEntries }
const anchoredOptions: Partial<SimulatedAttestationOptions> = {
  log: anchoredLog,
  // Not dstack's, which needs events.
  config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` },
}

export type PublishedAnchor = {
  block: AnchorBlock
  bytes: Uint8Array<ArrayBuffer>
  parts: readonly AnchorPart[]
  partBytes: readonly Uint8Array<ArrayBuffer>[]
  size: number
  root: string
  /** The path of each entry of the tree, in hex. */
  paths: readonly (readonly string[])[]
}

export type Anchored = {
  issue: SimulatedAttestation
  logContracts: readonly LogContract[]
  /** From 0 to 4, from 4 to 13 with the golden receipt, and from 13 to 16 with a late receipt. */
  anchors: readonly [first: PublishedAnchor, golden: PublishedAnchor, late: PublishedAnchor]
}

/** The golden receipt and the log's anchors. */
export async function createAnchored(
  golden: Pick<SimulatedAttestationOptions, 'signedAt' | 'treeSize' | 'leafIndex' | 'batchSequence'>,
): Promise<Anchored> {
  const issue = await createReceiptSimulator().issueV2({ ...golden, ...anchoredOptions })
  const own = toOwnEntry(issue.receipt)
  const entries = otherEntries.map((entry, index) => (index === goldenIndex ? own : entry))
  const { from, txHash } = nameSignature(issue.receipt)
  const receipts = [2, 5, goldenIndex, 11, 13, 14].map(
    (index): AnchoredReceipt =>
      index === goldenIndex
        ? { index, wallet: from, txHash, cid: issue.cid }
        : {
            index,
            wallet: `0x${hash(`wallet ${index}`).slice(24)}`,
            txHash: `0x${hash(`transaction ${index}`)}`,
            cid: toCid(new TextEncoder().encode(`receipt ${index}`)),
          },
  )
  const publish = (start: number, ends: readonly number[], listed: readonly (readonly number[])[]) =>
    publishAnchor({
      entries,
      from: start,
      ends,
      receipts: listed.map((indexes) => receipts.filter(({ index }) => indexes.includes(index))),
    })
  return {
    issue,
    logContracts: [{ address: LOG_WITNESS, logs: [{ id: LOG_ID }] }],
    anchors: [
      publish(0, [4], [[2]]),
      publish(4, [9, 13], [[goldenIndex], [11]]),
      publish(13, [16, 16], [[13, 14], [5]]),
    ],
  }
}

function toOwnEntry({ signer: { statement } }: AttestationReceiptV2): Uint8Array {
  const leaf = toHex(hashLeaf(statement))
  return encodeLogEntry({ kind: 'signature', keyId: statement.keyId, leaf, timeMs: Date.parse(statement.signedAt) })
}

/** One anchor, with parts that end at these sizes. */
function publishAnchor({
  entries,
  from,
  ends,
  receipts,
}: {
  entries: readonly Uint8Array[]
  from: number
  ends: readonly number[]
  receipts: readonly (readonly AnchoredReceipt[])[]
}): PublishedAnchor {
  const size = ends.at(-1) ?? from
  const leaves = entries.slice(0, size).map(hashTreeLeaf)
  const paths = leaves.map((_, index) => createInclusionProof(createLeafReader(leaves), { index, size }).map(toHex))
  const parts = ends.map((end, place): AnchorPart => {
    return {
      version: 'countersign-anchor-part/1',
      entries: toHex(concatBytes(...entries.slice(ends[place - 1] ?? from, end))),
      receipts: (receipts[place] ?? []).map((receipt) =>
        receipt.index < from ? { ...receipt, path: paths[receipt.index] } : receipt,
      ),
    }
  })
  const partBytes = parts.map(toCanonicalJson)
  const root = hashTree(leaves)
  const block: AnchorBlock = {
    version: 'countersign-anchor/1',
    checkpoint: signCheckpoint({ size, root }),
    from,
    frontier: appendLeaves(emptyFrontier, leaves.slice(0, from)).hashes.map(toHex),
    parts: partBytes.map(toCid),
  }
  const bytes = toCanonicalJson(block)
  readAnchor(bytes, partBytes)
  return { block, bytes, parts, partBytes, size, root: toHex(root), paths }
}

/** A note of a checkpoint by the golden log and its witnesses, or by others. */
export function signCheckpoint(
  checkpoint: { size: number; root: Uint8Array; origin?: string; extensions?: readonly string[] },
  { seed = developmentSeed, log = {} }: { seed?: string; log?: SimulatedLogOptions } = {},
): string {
  const text = formatCheckpoint({ origin: ORIGIN, extensions: [], ...checkpoint })
  return createSimulatedLog(seed, { ...anchoredLog, ...log }).sign(text, timeOf(checkpoint.size))
}

/** The event of an anchor, or one with other values. */
export function createCheckpointEvent(
  { size, root, bytes }: Pick<PublishedAnchor, 'size' | 'root' | 'bytes'>,
  blockTime: Date = new Date(SIGNED_AT_MS + 9_000),
): ChainLog {
  return {
    address: LOG_WITNESS,
    topics: [checkpointTopic, LOG_ID, toSizeTopic(size)],
    data: `0x${root}${toHex(sha256(bytes))}`,
    blockNumber: 12,
    blockTime,
  }
}
