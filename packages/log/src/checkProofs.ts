import { computeRoot, equalBytes, hashTreeNode, isNatural, ServiceError } from '@countersign/protocol/core'
import { emptyRoot } from './checkpoint.ts'
import { LogError } from './errors.ts'

/** A tree of 2^53 leaves has inclusion proofs of 53 hashes, and consistency proofs of one more. */
const MAX_PROOF = 63

export type InclusionParameters = {
  /** 32 bytes: SHA-256(0x00 ‖ entry). */
  leaf: Uint8Array
  index: number
  size: number
  root: Uint8Array
  proof: readonly Uint8Array[]
}

/** Verifies that the leaf has this position in the tree with this root (RFC 9162 §2.1.3.2). */
export function assertInclusion({ leaf, index, size, root, proof }: InclusionParameters): void {
  if (proof.length > MAX_PROOF) throw notIncluded('the proof is too long')
  const inclusion = { leaf, leafIndex: index, treeSize: size, path: proof }
  let computed: Uint8Array
  try {
    computed = computeRoot(inclusion, { maxTreeSize: Number.MAX_SAFE_INTEGER })
  } catch (error) {
    if (error instanceof ServiceError) throw notIncluded(error.details ?? error.message)
    throw error
  }
  if (!equalBytes(computed, root)) throw notIncluded('the proof leads to another root')
}

export type ConsistencyParameters = {
  oldSize: number
  oldRoot: Uint8Array
  size: number
  root: Uint8Array
  proof: readonly Uint8Array[]
}

/**
 * Verifies that the newer tree begins with the whole older tree (RFC 9162 §2.1.4.2). An empty proof is valid for an empty older tree and for
 * two equal trees.
 */
export function assertConsistency({ oldSize, oldRoot, size, root, proof }: ConsistencyParameters): void {
  if (!isNatural(oldSize) || !isNatural(size) || oldSize > size) throw inconsistent('the sizes are out of order')
  for (const hash of [oldRoot, root, ...proof]) if (hash.length !== 32) throw inconsistent('a hash is not 32 bytes')
  if (oldSize === 0 && !equalBytes(oldRoot, emptyRoot)) throw inconsistent('wrong root of the empty tree')
  if (oldSize === 0 || oldSize === size) {
    if (proof.length > 0) throw inconsistent('the proof is not empty')
    if (oldSize === size && !equalBytes(oldRoot, root)) throw inconsistent('the roots differ at the same size')
    return
  }
  if (proof.length === 0 || proof.length > MAX_PROOF) throw inconsistent('the proof is empty or too long')
  const roots = computeBothRoots({ oldSize, oldRoot, size, proof })
  if (!equalBytes(roots.older, oldRoot)) throw inconsistent('the proof leads to another root of the older tree')
  if (!equalBytes(roots.newer, root)) throw inconsistent('the proof leads to another root of the newer tree')
}

/** The steps of the RFC. `node` and `last` are its fn and sn, `older` and `newer` its fr and sr. */
function computeBothRoots({ oldSize, oldRoot, size, proof }: Omit<ConsistencyParameters, 'root'>) {
  let node = oldSize - 1
  let last = size - 1
  const goUp = () => {
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  while (node % 2 === 1) goUp()
  // If the older tree is one complete subtree, the proof omits it because its root is known.
  const [first, ...path] = node === 0 ? [oldRoot, ...proof] : proof
  let older = first as Uint8Array
  let newer = older
  for (const hash of path) {
    if (last === 0) throw inconsistent('the proof is too long')
    if (node % 2 === 1 || node === last) {
      older = hashTreeNode(hash, older)
      newer = hashTreeNode(hash, newer)
      while (node % 2 === 0 && node !== 0) goUp()
    } else {
      newer = hashTreeNode(newer, hash)
    }
    goUp()
  }
  if (last !== 0) throw inconsistent('the proof is too short')
  return { older, newer }
}

function notIncluded(details: string) {
  return new LogError('inclusion_invalid', 'the leaf is not in the tree', { details })
}

function inconsistent(details: string) {
  return new LogError('consistency_invalid', 'the trees are not consistent', { details })
}
