import { hashTree, isNatural } from '@countersign/protocol/core'
import { emptyRoot } from './checkpoint.ts'
import { hashNodes, listRangeNodes, outside, type Range, type TreeNode } from './treeNodes.ts'

/** Returns the hash of a complete subtree. */
export type ReadNode = (node: TreeNode) => Uint8Array

/*
 * This follows the definitions of RFC 6962. Each hash of a proof is the root of a range of leaves, and each range consists of a few
 * complete subtrees.
 */

/** The nodes to read for the inclusion proof of a leaf. */
export function listInclusionNodes(parameters: { index: number; size: number }): TreeNode[] {
  return listInclusionRanges(parameters).flatMap(listRangeNodes)
}

/** The nodes to read for the consistency proof between two sizes. */
export function listConsistencyNodes(parameters: { oldSize: number; size: number }): TreeNode[] {
  return listConsistencyRanges(parameters).flatMap(listRangeNodes)
}

/** The audit path of a leaf (RFC 6962 §2.1.1), from its sibling up. */
export function createInclusionProof(readNode: ReadNode, parameters: { index: number; size: number }): Uint8Array[] {
  return listInclusionRanges(parameters).map((range) => hashRange(readNode, range))
}

/** Proves that the tree of `size` extends the tree of `oldSize` (RFC 6962 §2.1.2). Empty if the old tree is empty or the same. */
export function createConsistencyProof(
  readNode: ReadNode,
  parameters: { oldSize: number; size: number },
): Uint8Array[] {
  return listConsistencyRanges(parameters).map((range) => hashRange(readNode, range))
}

export function computeTreeRoot(readNode: ReadNode, size: number): Uint8Array {
  if (!isNatural(size)) throw outside()
  return size === 0 ? Uint8Array.from(emptyRoot) : hashRange(readNode, { start: 0, end: size })
}

/** Reads nodes of a tree whose leaf hashes are all in memory. */
export function createLeafReader(leaves: readonly Uint8Array[]): ReadNode {
  return ({ level, index }) => {
    const nodes = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level)
    if (nodes.length !== 2 ** level) throw outside()
    return hashTree(nodes)
  }
}

function hashRange(readNode: ReadNode, range: Range): Uint8Array {
  return hashNodes(listRangeNodes(range).map(readNode))
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
  // If the old tree is a complete subtree of the new one, the verifier already has its root.
  return start === 0 ? ranges : [{ start, end }, ...ranges]
}

/** k of RFC 6962: the largest power of two below n. n is at least 2. */
function splitSize(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}
