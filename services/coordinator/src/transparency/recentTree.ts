import { type Frontier, listTreeNodes, type TreeNode } from '@countersign/log'
import { fromHex, toHex } from '@countersign/protocol'
import { createTreeEdge } from '@countersign/service/hexTree'

/** The right edge of a log's tree, as it grows: its root, and the nodes that came lately, of which proofs for witnesses are made. */
export type RecentTree = {
  readonly size: number
  computeRoot(): Uint8Array
  /** In hex. */
  append(leaves: readonly string[]): void
  /** Undefined for one that is too old, or not complete. */
  find(node: TreeNode): Uint8Array | undefined
}

/** Nodes of one generation. Two are kept: enough for witnesses that are some thousand entries behind. */
const GENERATION = 8_192

export function createRecentTree({ size, hashes }: Frontier): RecentTree {
  let older = new Map<number, string>()
  let newer = new Map<number, string>()
  const edge = createTreeEdge({ size, hashes: hashes.map(toHex) }, keep)
  keepEdge()

  function keep(level: number, index: number, hash: string) {
    newer.set(toNumber(level, index), hash)
  }

  /** What the next proofs begin with. */
  function keepEdge() {
    for (const [place, { level, index }] of listTreeNodes(edge.size).entries()) {
      keep(level, index, edge.hashes[place] as string)
    }
  }

  return {
    get size() {
      return edge.size
    },
    computeRoot: () => fromHex(edge.computeRoot()),
    append(leaves) {
      for (const leaf of leaves) edge.append(leaf)
      if (newer.size < GENERATION) return
      older = newer
      newer = new Map()
      keepEdge()
    },
    find({ level, index }) {
      const number = toNumber(level, index)
      const hash = newer.get(number) ?? older.get(number)
      return hash === undefined ? undefined : fromHex(hash)
    },
  }
}

/** A node's place as one number: levels end below 64, and sizes far below 2^47, where it would not be exact. */
const toNumber = (level: number, index: number) => index * 64 + level
