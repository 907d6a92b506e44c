import { hashTreeNode, isNatural } from '@countersign/protocol/core'
import { LogError } from './errors.ts'

/** The root of the 2^level leaves from index · 2^level on. */
export type TreeNode = { level: number; index: number }

export type Range = { start: number; end: number }

/* Sizes are up to 2^53 - 1. Uses divisions and powers, because shifts are limited to 32 bits. */

/** The complete subtrees of a tree of this size, the largest first. */
export function listTreeNodes(size: number): TreeNode[] {
  if (!isNatural(size)) throw outside()
  return listRangeNodes({ start: 0, end: size })
}

/** The root of a tree from its complete subtrees, the largest first. */
export function hashNodes(hashes: readonly Uint8Array[]): Uint8Array {
  return hashes.toReversed().reduce((right, left) => hashTreeNode(left, right))
}

/** A range of a proof starts where a subtree of at least its size starts, so its largest complete subtree comes first. */
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
  return new LogError('tree_range_invalid', 'the tree does not have this leaf or size')
}
