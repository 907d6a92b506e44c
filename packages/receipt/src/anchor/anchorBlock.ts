import {
  appendLeaves,
  assertFrontier,
  computeFrontierRoot,
  createInclusionProof,
  type Frontier,
  LOG_ENTRY_BYTES,
  LogError,
  listTreeNodes,
  parseCheckpoint,
  parseNote,
  type ReadNode,
  type TreeNode,
} from '@countersign/log'
import { equalBytes, fromHex, type Hex, hashTree, hashTreeLeaf, hashTreeNode, toHex } from '@countersign/protocol'
import { z } from 'zod'
import { createCodec } from '../canonicalCodec.ts'
import { toCid } from '../cid.ts'
import { ReceiptError } from '../errors.ts'
import { cid, ethereum, hex, natural, text, toReadonly } from '../schemaFields.ts'

/*
 * `spec/anchor-v1.md`: the blocks that a checkpoint on the chain refers to. With them, anyone finds the receipts of a log without its
 * service, and computes the path of each entry to the root on the chain.
 */

/** A receipt that the anchor lists, for the entry with this index. */
export type AnchoredReceipt = {
  index: number
  wallet: Hex
  /** The second field of today's event. */
  txHash: Hex
  cid: string
  /** From the leaf's sibling up, in hex. Present if an earlier anchor has the entry. */
  path?: readonly string[] | undefined
}

export type AnchorBlock = {
  version: 'countersign-anchor/1'
  /** A note: the checkpoint with the signatures of the log and its witnesses. */
  checkpoint: string
  /** The size at the previous anchor, where the entries start. */
  from: number
  /** The complete subtrees of the tree of that size, the largest first. */
  frontier: readonly string[]
  /** CIDs of the parts, in order. */
  parts: readonly string[]
}

export type AnchorPart = {
  version: 'countersign-anchor-part/1'
  /** 57 bytes each, in hex. */
  entries: string
  receipts: readonly AnchoredReceipt[]
}

type Bytes = Uint8Array<ArrayBuffer>
type Block = { cid: string; bytes: Bytes }

/** With so many entries and their receipts, a part has at most 224 kB. */
const ENTRIES_OF_PART = 640
/** A receipt with a path has at most 4 kB. */
const LATE_OF_PART = 60
/** Limits the work of a reader to about a minute. */
export const MAX_ANCHOR_ENTRIES = 500_000
/** All parts together. Limits the memory of a reader. */
export const MAX_PARTS_BYTES = 134_217_728

export const anchorSchemas: { block: z.ZodType<AnchorBlock, AnchorBlock>; part: z.ZodType<AnchorPart, AnchorPart> } = {
  block: z.strictObject({
    version: z.literal('countersign-anchor/1'),
    checkpoint: text(131_072),
    from: natural,
    frontier: toReadonly(z.array(hex(32)).max(53)),
    parts: toReadonly(z.array(cid).min(1).max(2_000)),
  }),
  part: z.strictObject({
    version: z.literal('countersign-anchor-part/1'),
    entries: z
      .string()
      .regex(/^(?:[0-9a-f]{114})*$/)
      .max(2 * ENTRIES_OF_PART * LOG_ENTRY_BYTES),
    receipts: toReadonly(
      z
        .array(
          z.strictObject({
            index: natural,
            wallet: ethereum(20),
            txHash: ethereum(32),
            cid,
            path: toReadonly(z.array(hex(32)).max(53)).optional(),
          }),
        )
        .max(ENTRIES_OF_PART),
    ),
  }),
}

const blocks = createCodec('countersign-anchor/1', 'anchor block', anchorSchemas.block)
const parts = createCodec('countersign-anchor-part/1', 'part of an anchor block', anchorSchemas.part)

/** Parses an anchor block from its canonical bytes. */
export const parseAnchorBlock = (bytes: Uint8Array): AnchorBlock => blocks.parse(bytes)

/**
 * Creates an anchor block and its parts. `entries` are those from `frontier.size` up to the checkpoint's size, one after the other. Throws
 * `anchor_invalid` if they don't lead to the checkpoint's root.
 */
export function createAnchor(parameters: {
  checkpoint: string
  frontier: Frontier
  entries: Uint8Array
  receipts: readonly AnchoredReceipt[]
}): { block: Block; parts: Block[] } {
  const { checkpoint, frontier, entries } = parameters
  const from = frontier.size
  const receipts = parameters.receipts.toSorted((left, right) => left.index - right.index)
  const size = from + entries.length / LOG_ENTRY_BYTES
  assertReceipts(receipts, { from, size })
  const late = receipts.filter(({ index }) => index < from)
  const contents: Omit<AnchorPart, 'version'>[] = []
  for (let start = 0; start * LOG_ENTRY_BYTES < entries.length; start += ENTRIES_OF_PART) {
    const end = start + ENTRIES_OF_PART
    contents.push({
      entries: toHex(entries.subarray(start * LOG_ENTRY_BYTES, end * LOG_ENTRY_BYTES)),
      receipts: receipts.filter(({ index }) => index >= from + start && index < from + end),
    })
  }
  for (let at = 0; at < late.length; at += LATE_OF_PART) {
    contents.push({ entries: '', receipts: late.slice(at, at + LATE_OF_PART) })
  }
  const encoded = contents.map((content) => toBlock(parts.encode({ version: 'countersign-anchor-part/1', ...content })))
  const bytes = blocks.encode({
    version: 'countersign-anchor/1',
    checkpoint,
    from,
    frontier: frontier.hashes.map(toHex),
    parts: encoded.map(({ cid }) => cid),
  })
  // A published anchor can't be withdrawn, so this checks it as a reader does.
  readAnchor(
    bytes,
    encoded.map((part) => part.bytes),
  )
  return { block: toBlock(bytes), parts: encoded }
}

function toBlock(bytes: Bytes): Block {
  return { cid: toCid(bytes), bytes }
}

export type Anchor = {
  origin: string
  size: number
  root: Uint8Array
  from: number
  /** In the order of the parts. */
  receipts: readonly AnchoredReceipt[]
  /** The inclusion proof of an entry. Throws `anchor_invalid` for an entry of an earlier anchor without a listed path. */
  toPath(index: number): Uint8Array[]
}

/**
 * Reads an anchor from its block and all its parts, in order, and checks that its entries lead to the checkpoint's root. The caller compares
 * the checkpoint with the chain, and checks its cosignatures.
 */
export function readAnchor(bytes: Uint8Array, partBytes: readonly Uint8Array[]): Anchor {
  const block = parseAnchorBlock(bytes)
  if (block.parts.length !== partBytes.length) throw invalid('a part is missing')
  if (partBytes.reduce((sum, { length }) => sum + length, 0) > MAX_PARTS_BYTES) throw invalid('the parts are too large')
  const leaves: Uint8Array[] = []
  const receipts: AnchoredReceipt[] = []
  for (const [index, one] of partBytes.entries()) {
    if (toCid(one) !== block.parts[index]) throw invalid(`part ${index} does not match its CID`)
    const part = parts.parse(one)
    const entries = fromHex(part.entries)
    for (let start = 0; start < entries.length; start += LOG_ENTRY_BYTES) {
      leaves.push(hashTreeLeaf(entries.subarray(start, start + LOG_ENTRY_BYTES)))
    }
    receipts.push(...part.receipts)
  }
  const { origin, size, root, extensions } = parseLogged(() => parseCheckpoint(parseNote(block.checkpoint).text))
  if (extensions.length > 0) throw invalid('the checkpoint has extension lines')
  const { from } = block
  const frontier = { size: from, hashes: block.frontier.map(fromHex) }
  if (from + leaves.length !== size || leaves.length > MAX_ANCHOR_ENTRIES) throw invalid('wrong number of entries')
  const computed = parseLogged(() => {
    assertFrontier(frontier)
    return computeFrontierRoot(appendLeaves(frontier, leaves))
  })
  if (!equalBytes(computed, root)) throw invalid('the entries lead to another root')
  assertReceipts(receipts, { from, size })
  const listed = new Map(receipts.map((receipt) => [receipt.index, receipt]))
  const readNode = createNodeReader(frontier, leaves)
  return {
    origin,
    size,
    root,
    from,
    receipts,
    toPath(index) {
      if (index >= from) return createInclusionProof(readNode, { index, size })
      const path = listed.get(index)?.path
      if (path === undefined) throw invalid(`entry ${index} is in an earlier anchor`)
      return path.map(fromHex)
    },
  }
}

/** A receipt has a path exactly if its entry is in an earlier anchor. */
function assertReceipts(receipts: readonly AnchoredReceipt[], { from, size }: { from: number; size: number }): void {
  for (const { index, path } of receipts) {
    if (index >= size) throw invalid(`entry ${index} of a receipt is not in the tree`)
    if ((path === undefined) !== index >= from) throw invalid(`the receipt of entry ${index} has a wrong path`)
  }
}

/** Reads nodes of the whole tree, of which only the frontier and the later leaves are known. Hashes each node once. */
function createNodeReader(frontier: Frontier, leaves: readonly Uint8Array[]): ReadNode {
  const from = frontier.size
  const toKey = ({ level, index }: TreeNode) => `${level}/${index}`
  const known = new Map(listTreeNodes(from).map((node, place) => [toKey(node), frontier.hashes[place] as Uint8Array]))
  const readNode: ReadNode = (node) => {
    const hash = known.get(toKey(node)) ?? computeNode(node)
    known.set(toKey(node), hash)
    return hash
  }
  function computeNode({ level, index }: TreeNode): Uint8Array {
    const [start, end] = [index * 2 ** level, (index + 1) * 2 ** level]
    if (start >= from) return hashTree(leaves.slice(start - from, end - from))
    if (end <= from) throw invalid('the frontier lacks a hash')
    const left = { level: level - 1, index: 2 * index }
    return hashTreeNode(readNode(left), readNode({ ...left, index: left.index + 1 }))
  }
  return readNode
}

function parseLogged<Value>(parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    if (error instanceof LogError) throw invalid(error.details ?? error.message)
    throw error
  }
}

function invalid(details: string) {
  return new ReceiptError('anchor_invalid', 'invalid anchor block', { details })
}
