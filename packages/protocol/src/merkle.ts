import { sha256 } from '@noble/hashes/sha2.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isNatural, toField } from './fields.ts'

type Bytes = Uint8Array<ArrayBuffer>

export const HASH_BYTES = 32
/** A quote has the size of its batch as a u32. */
const MAX_TREE_SIZE = 0xffff_ffff

/** The position of a leaf in a tree, with its audit path. */
export type Inclusion = { leafIndex: number; treeSize: number; path: readonly Uint8Array[] }

/** SHA-256(0x00 ‖ entry): RFC 6962 §2.1. The first byte distinguishes leaves from nodes. */
export function hashTreeLeaf(entry: Uint8Array): Bytes {
  const preimage = new Uint8Array(1 + entry.length)
  preimage.set(entry, 1)
  return sha256(preimage)
}

/** The root of the tree (RFC 6962 §2.1) over leaf hashes, in order. */
export function hashTree(leaves: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(toLevels(leaves).at(-1)?.[0] as Uint8Array)
}

/** The audit path (RFC 6962 §2.1.1) of the leaf at `index`, from its sibling up. */
export function createInclusionPath(leaves: readonly Uint8Array[], index: number): Bytes[] {
  const levels = toLevels(leaves)
  if (!isNatural(index) || index >= leaves.length) throw malformed('the index is outside the tree')
  return readPath(levels, index)
}

/** The paths of all leaves. Costs as much as building the tree once. */
export function createInclusionPaths(leaves: readonly Uint8Array[]): Bytes[][] {
  const levels = toLevels(leaves)
  return leaves.map((_, index) => readPath(levels, index))
}

/**
 * The root that a leaf and its path lead to (RFC 9162 §2.1.3.2). The path doesn't determine the size: in trees of 3 and of 4 leaves, the
 * first leaf's path has the same form. So compare root *and* size with the quote's report data, which covers both.
 *
 * @example
 * const root = computeRoot({ leaf: hashLeaf(statement), leafIndex, treeSize, path })
 */
export function computeRoot(
  { leaf, leafIndex, treeSize, path }: Inclusion & { leaf: Uint8Array },
  { maxTreeSize = MAX_TREE_SIZE }: { maxTreeSize?: number } = {},
): Bytes {
  if (!isNatural(treeSize) || treeSize < 1 || treeSize > maxTreeSize) throw malformed('the size is out of range')
  if (!isNatural(leafIndex) || leafIndex >= treeSize) throw malformed('the index is outside the tree')
  if (!Array.isArray(path)) throw malformed('the path is not a list')
  for (const hash of [leaf, ...path]) if (!isHash(hash)) throw malformed(`a hash is not ${HASH_BYTES} bytes`)
  // Divisions, because shifts are limited to 32 bits and a log may have more leaves.
  let node = leafIndex
  let last = treeSize - 1
  let hash = leaf
  const goUp = () => {
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  for (const sibling of path) {
    if (last === 0) throw malformed('the path is too long')
    if (node % 2 === 1 || node === last) {
      hash = hashTreeNode(sibling, hash)
      // Skips levels where this node has no sibling.
      while (node % 2 === 0 && node !== 0) goUp()
    } else {
      hash = hashTreeNode(hash, sibling)
    }
    goUp()
  }
  if (last !== 0) throw malformed('the path is too short')
  return Uint8Array.from(hash)
}

/**
 * All levels, from the leaves to the root. RFC 6962 splits at the largest power of two below the size. Pairing from the left, level by
 * level, with an odd last node carried up, gives the same tree without recursion.
 */
function toLevels(leaves: readonly Uint8Array[]): (readonly Uint8Array[])[] {
  // RFC 6962 defines a root for an empty tree, but an empty batch is never quoted.
  if (leaves.length === 0) throw malformed('a tree has at least one leaf')
  for (const leaf of leaves) toField('leaf', leaf, HASH_BYTES)
  const levels = [leaves]
  for (let level = leaves; level.length > 1; ) {
    const above: Uint8Array[] = []
    for (let index = 0; index < level.length; index += 2) {
      const left = level[index] as Uint8Array
      const right = level[index + 1]
      above.push(right === undefined ? left : hashTreeNode(left, right))
    }
    levels.push(above)
    level = above
  }
  return levels
}

function readPath(levels: readonly (readonly Uint8Array[])[], index: number): Bytes[] {
  const path: Bytes[] = []
  let position = index
  for (const level of levels) {
    // The last node of an odd level has no sibling and moves up unchanged.
    const sibling = level[position ^ 1]
    if (sibling !== undefined) path.push(Uint8Array.from(sibling))
    position >>>= 1
  }
  return path
}

/** SHA-256(0x01 ‖ left ‖ right): RFC 6962 §2.1. */
export function hashTreeNode(left: Uint8Array, right: Uint8Array): Bytes {
  const preimage = new Uint8Array(1 + 2 * HASH_BYTES)
  preimage[0] = 1
  preimage.set(left, 1)
  preimage.set(right, 1 + HASH_BYTES)
  return sha256(preimage)
}

function isHash(value: unknown): boolean {
  return value instanceof Uint8Array && value.length === HASH_BYTES
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('inclusion_malformed', 'malformed inclusion', { details })
}
