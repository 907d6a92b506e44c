import { computeFrontierRoot, type Frontier, listTreeNodes, type TreeNode } from '@countersign/log'
import { hashNode } from './hashNodes.ts'

/** The right edge of a log's tree, as it grows: its root, and the nodes that came lately, of which proofs for witnesses are made. */
export type RecentTree = {
  readonly size: number
  computeRoot(): Uint8Array
  append(leaves: readonly Uint8Array[]): void
  /** Undefined for one that is too old, or not complete. */
  find(node: TreeNode): Uint8Array | undefined
}

/** Nodes of one generation. Two are kept: enough for witnesses that are some thousand entries behind. */
const GENERATION = 8_192

export function createRecentTree({ size: firstSize, hashes }: Frontier): RecentTree {
  let size = firstSize
  /** The roots of the complete subtrees, the largest first. */
  const edge = hashes.map((hash, index) => ({ node: listTreeNodes(firstSize)[index] as TreeNode, hash }))
  let older = new Map<string, Uint8Array>()
  let newer = new Map<string, Uint8Array>()
  const keep = (node: TreeNode, hash: Uint8Array) => newer.set(toName(node), hash)
  for (const { node, hash } of edge) keep(node, hash)

  function appendLeaf(leaf: Uint8Array) {
    let hash = leaf
    let node: TreeNode = { level: 0, index: size }
    keep(node, hash)
    // Each subtree of the same height on the left is completed by what has come.
    while (edge.at(-1)?.node.level === node.level) {
      hash = hashNode((edge.pop() as { hash: Uint8Array }).hash, hash)
      node = { level: node.level + 1, index: Math.floor(node.index / 2) }
      keep(node, hash)
    }
    edge.push({ node, hash })
    size += 1
  }

  return {
    get size() {
      return size
    },
    computeRoot: () => computeFrontierRoot({ size, hashes: edge.map(({ hash }) => hash) }),
    append(leaves) {
      for (const leaf of leaves) appendLeaf(leaf)
      if (newer.size < GENERATION) return
      older = newer
      newer = new Map()
      // What the next proofs begin with.
      for (const { node, hash } of edge) keep(node, hash)
    },
    find: (node) => newer.get(toName(node)) ?? older.get(toName(node)),
  }
}

/** For maps of nodes. */
export function toName({ level, index }: TreeNode): string {
  return `${level}/${index}`
}
