import { hashTreeNode, isNatural, readMembers } from '@countersign/protocol/core'
import { emptyRoot } from './checkpoint.ts'
import { LogError } from './errors.ts'
import { hashNodes, listTreeNodes } from './treeNodes.ts'

/**
 * The part of a tree that is needed to append to it: the roots of its complete subtrees, the largest first, one for each bit set in the size.
 * Also called a compact range.
 */
export type Frontier = { size: number; hashes: readonly Uint8Array[] }

/** The frontier of an empty tree. */
export const emptyFrontier: Frontier = { size: 0, hashes: [] }

/** Narrows untrusted input by the number of hashes for its size. Only comparing the root shows that the hashes are right. */
export function assertFrontier(value: unknown): asserts value is Frontier {
  const { size, hashes } = readMembers(value, { required: ['size', 'hashes'] }, malformed)
  if (!isNatural(size) || !Array.isArray(hashes)) throw malformed('malformed size or hashes')
  if (hashes.length !== listTreeNodes(size).length) throw malformed('wrong number of hashes for this size')
  for (const hash of hashes) {
    if (!(hash instanceof Uint8Array) || hash.length !== 32) throw malformed('a hash is not 32 bytes')
  }
}

/**
 * Returns the frontier after more leaves. Doesn't change the given one.
 *
 * @example
 * const next = appendLeaves(frontier, entries.map(hashLogEntry))
 */
export function appendLeaves({ size, hashes }: Frontier, leaves: readonly Uint8Array[]): Frontier {
  const stack = [...hashes]
  let count = size
  for (const leaf of leaves) {
    if (leaf.length !== 32) throw malformed('a leaf is not 32 bytes')
    if (count === Number.MAX_SAFE_INTEGER) throw malformed('the tree is full')
    let node = leaf
    // Merges subtrees of equal height.
    for (let rest = count; rest % 2 === 1; rest = Math.floor(rest / 2)) {
      node = hashTreeNode(stack.pop() as Uint8Array, node)
    }
    stack.push(node)
    count += 1
  }
  return { size: count, hashes: stack }
}

/** The root of the tree. */
export function computeFrontierRoot({ hashes }: Frontier): Uint8Array {
  return hashes.length === 0 ? Uint8Array.from(emptyRoot) : Uint8Array.from(hashNodes(hashes))
}

function malformed(details: string) {
  return new LogError('frontier_malformed', 'malformed frontier', { details })
}
