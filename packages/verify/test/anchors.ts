import { appendLeaves, emptyFrontier, encodeLogEntry, hashLogEntry } from '@countersign/log'
import {
  checkpointTopic,
  concatBytes,
  type Hex,
  hashTree,
  type ProofAnchor,
  toHex,
  toSizeTopic,
} from '@countersign/protocol'
import { type AnchoredReceipt, createAnchor, nameSignature, readAnchor, toCidHash } from '@countersign/receipt'
import type { ManifestLogContract } from '../src/parseManifest.ts'
import { type FakeIssue, publishingTx } from './issues.ts'
import { type FakeLog, nameEntry } from './monitor/log/log.ts'

export const logWitness: Hex = `0x${'1c'.repeat(20)}`
export const logId: Hex = `0x${'1d'.repeat(32)}`
export const otherId: Hex = `0x${'1e'.repeat(32)}`

export const logContract: ManifestLogContract = {
  chainId: 31337,
  address: logWitness,
  fromBlock: 7,
  logs: [{ id: logId }],
}

type Block = { cid: string; bytes: Uint8Array<ArrayBuffer> }
export type FakeAnchor = { id: Hex; size: number; root: Hex; block: Block; parts: readonly Block[] }

type FakeAnchorOptions = {
  from?: number
  /** Default: the whole log. */
  size?: number
  change?: (receipt: AnchoredReceipt) => AnchoredReceipt
}

/** The anchor of a log with these receipts, signed and cosigned like the log's checkpoints. */
export function createFakeAnchor(
  log: FakeLog,
  issues: readonly FakeIssue[],
  { from = 0, size = log.close(), change = (receipt) => receipt }: FakeAnchorOptions = {},
): FakeAnchor {
  const leaves = log.entries.map(hashLogEntry)
  const { block, parts } = createAnchor({
    checkpoint: log.toNote(size),
    frontier: appendLeaves(emptyFrontier, leaves.slice(0, from)),
    entries: concatBytes(...log.entries.slice(from, size).map(encodeLogEntry)),
    receipts: issues.map((issue) => change(toListed(log, issue))),
  })
  return { id: logId, size, root: `0x${toHex(hashTree(leaves.slice(0, size)))}`, block, parts }
}

function findIndex(log: FakeLog, issue: FakeIssue): number {
  if (!('log' in issue.receipt)) throw new TypeError('a receipt without a log')
  const { leaf } = nameEntry(issue as Parameters<typeof nameEntry>[0])
  return log.entries.findIndex((entry) => entry.kind === 'signature' && entry.leaf === leaf)
}

function toListed(log: FakeLog, issue: FakeIssue): AnchoredReceipt {
  const { from: wallet, txHash } = nameSignature(issue.receipt)
  return { index: findIndex(log, issue), wallet, txHash: txHash as Hex, cid: issue.cid }
}

/** The topics and data of a `Checkpoint` event, encoded by hand. */
export function toCheckpoint({ id, size, root, block }: FakeAnchor) {
  return {
    address: logWitness,
    topics: [checkpointTopic, id, toSizeTopic(size)],
    data: `${root}${toCidHash(block.cid)}`,
    transactionHash: publishingTx,
    removed: false,
  }
}

/** As the service names it for a receipt. */
export function toProofAnchor(log: FakeLog, issue: FakeIssue, anchor: FakeAnchor, blockNumber: number): ProofAnchor {
  const index = findIndex(log, issue)
  const { toPath } = readAnchor(
    anchor.block.bytes,
    anchor.parts.map(({ bytes }) => bytes),
  )
  return {
    chainId: 31337,
    contract: logWitness,
    id: anchor.id,
    size: anchor.size,
    index,
    path: toPath(index).map(toHex),
    txHash: publishingTx,
    blockNumber,
  }
}

/** The block with one text replaced. */
export function editBlock({ bytes }: Block, from: string, to: string): Uint8Array<ArrayBuffer> {
  const text = new TextDecoder().decode(bytes)
  if (!text.includes(from)) throw new Error(`the block has no ${from}`)
  return Uint8Array.from(new TextEncoder().encode(text.replace(from, to)))
}
