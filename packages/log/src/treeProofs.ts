import { hashTree, isNatural } from '@countersign/protocol/core'
import { emptyRoot } from './checkpoint.ts'
import { hashNodes, listRangeNodes, outside, type Range, type TreeNode } from './treeNodes.ts'

/** The hash of a node that is complete in its tree. */
export type ReadNode = (node: TreeNode) => Uint8Array

/*
 * The definitions of RFC 6962 are taken as they stand there; each hash of a proof is the root of a range of leaves, and a range is a few
 * complete subtrees.
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
  // The older root itself, where it is a subtree of the newer tree, is known to the reader.
  return start === 0 ? ranges : [{ start, end }, ...ranges]
}

/** k of RFC 6962: the largest power of two below n, for n from 2 on. */
function splitSize(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}
