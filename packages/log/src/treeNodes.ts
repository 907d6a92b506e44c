import { hashTreeNode, isNatural } from '@countersign/protocol/core'
import { LogError } from './errors.ts'

/** The root of the 2^level leaves from index · 2^level on. */
export type TreeNode = { level: number; index: number }

export type Range = { start: number; end: number }

/*
 * Sizes go to 2^53 - 1: divisions and powers, not shifts, which end at 32 bits.
 */

/** From the largest subtree to the smallest: the nodes that the tree of a size ends in. */
export function listTreeNodes(size: number): TreeNode[] {
  if (!isNatural(size)) throw outside()
  return listRangeNodes({ start: 0, end: size })
}

/** Of such subtrees, larger ones first, the root of the whole. */
export function hashNodes(hashes: readonly Uint8Array[]): Uint8Array {
  return hashes.toReversed().reduce((right, left) => hashTreeNode(left, right))
}

/** A range of a proof begins where a subtree at least as large as itself begins, so the largest complete subtree always comes first. */
export function listRangeNodes({ start, end }: Range): TreeNode[] {
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

export function outside() {
  return new LogError('tree_range_invalid', 'the tree has no such leaf or size')
}
