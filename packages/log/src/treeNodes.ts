import { hashTree, hashTreeNode, isNatural } from '@countersign/protocol'
import { emptyRoot } from './checkpoint.ts'
import { LogError } from './errors.ts'

/** The root of the 2^level leaves from index · 2^level on. */
export type TreeNode = { level: number; index: number }

/** The hash of a node that is complete in its tree. */
export type ReadNode = (node: TreeNode) => Uint8Array

type Range = { start: number; end: number }

/*
 * Sizes go to 2^53 - 1: divisions and powers, not shifts, which end at 32 bits. The definitions of RFC 6962 are taken as they
 * stand there; each hash of a proof is the root of a range of leaves, and a range is a few complete subtrees.
 */

/** The nodes that the proof of a leaf is made of. */
export function listInclusionNodes(parameters: { index: number; size: number }): TreeNode[] {
  return listInclusionRanges(parameters).flatMap(listRangeNodes)
}

/** The nodes that the proof between two sizes is made of. */
export function listConsistencyNodes(parameters: { oldSize: number; size: number }): TreeNode[] {
  return listConsistencyRanges(parameters).flatMap(listRangeNodes)
}

/** The audit path of a leaf (RFC 6962 §2.1.1), from its sibling up. */
export function createInclusionProof(readNode: ReadNode, parameters: { index: number; size: number }): Uint8Array[] {
  return listInclusionRanges(parameters).map((range) => hashRange(readNode, range))
}

/** That the tree of `size` continues the tree of `oldSize` (RFC 6962 §2.1.2). Empty if the older is empty, or the same. */
export function createConsistencyProof(
  readNode: ReadNode,
  parameters: { oldSize: number; size: number },
): Uint8Array[] {
  return listConsistencyRanges(parameters).map((range) => hashRange(readNode, range))
}

/** The root of the tree of a size. */
export function computeTreeRoot(readNode: ReadNode, size: number): Uint8Array {
  if (!isNatural(size)) throw outside()
  return size === 0 ? Uint8Array.from(emptyRoot) : hashRange(readNode, { start: 0, end: size })
}

/** Nodes of a tree whose leaf hashes are all at hand. */
export function createLeafReader(leaves: readonly Uint8Array[]): ReadNode {
  return ({ level, index }) => {
    const nodes = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level)
    if (nodes.length !== 2 ** level) throw outside()
    return hashTree(nodes)
  }
}

/** From the largest subtree to the smallest: the nodes that the tree of a size ends in. */
export function listTreeNodes(size: number): TreeNode[] {
  if (!isNatural(size)) throw outside()
  return listRangeNodes({ start: 0, end: size })
}

/** Of such subtrees, larger ones first, the root of the whole. */
export function hashNodes(hashes: readonly Uint8Array[]): Uint8Array {
  return hashes.toReversed().reduce((right, left) => hashTreeNode(left, right))
}

function hashRange(readNode: ReadNode, range: Range): Uint8Array {
  return hashNodes(listRangeNodes(range).map(readNode))
}

/** A range of a proof begins where a subtree at least as large as itself begins, so the largest complete subtree always comes first. */
function listRangeNodes({ start, end }: Range): TreeNode[] {
  const nodes: TreeNode[] = []
  for (let at = start; at < end; ) {
    const level = Math.floor(Math.log2(end - at))
    // Math.log2 rounds up just below large powers of two.
    const exact = 2 ** level > end - at ? level - 1 : level
    nodes.push({ level: exact, index: at / 2 ** exact })
    at += 2 ** exact
  }
  return nodes
}

function listInclusionRanges({ index, size }: { index: number; size: number }): Range[] {
  if (!isNatural(index) || !isNatural(size) || index >= size) throw outside()
  const ranges: Range[] = []
  for (let start = 0, end = size; end - start > 1; ) {
    const middle = start + splitSize(end - start)
    const isLeft = index < middle
    ranges.unshift(isLeft ? { start: middle, end } : { start, end: middle })
    if (isLeft) end = middle
    else start = middle
  }
  return ranges
}

function listConsistencyRanges({ oldSize, size }: { oldSize: number; size: number }): Range[] {
  if (!isNatural(oldSize) || !isNatural(size) || oldSize > size) throw outside()
  if (oldSize === 0 || oldSize === size) return []
  const ranges: Range[] = []
  let [start, end] = [0, size]
  while (end !== oldSize) {
    const middle = start + splitSize(end - start)
    const isLeft = oldSize <= middle
    ranges.unshift(isLeft ? { start: middle, end } : { start, end: middle })
    if (isLeft) end = middle
    else start = middle
  }
  // The older root itself, where it is a subtree of the newer tree, is known to the reader.
  return start === 0 ? ranges : [{ start, end }, ...ranges]
}

/** k of RFC 6962: the largest power of two below n, for n from 2 on. */
function splitSize(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}

function outside() {
  return new LogError('tree_range_invalid', 'the tree has no such leaf or size')
}
