import {
  computeTreeRoot,
  createConsistencyProof,
  createTileReader,
  type Frontier,
  listConsistencyNodes,
  listTreeNodes,
  type ReadNode,
  type Tile,
  type TreeNode,
  toTile,
  toTilePath,
} from '@countersign/log'
import { fromHex, toHex } from '@countersign/protocol'
import { createTreeEdge } from '@countersign/service/hexTree'
import type { LogStore } from '../store/logs.ts'

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

type NodeSource = {
  store: Pick<LogStore, 'readTiles'>
  /** The log's name in the store. */
  hash: string
  /** What is at hand; the rest is read. */
  recent: Pick<RecentTree, 'find'> | undefined
}

/** That the tree of `size`, which is written, continues the one of `oldSize`. */
export async function proveConsistency(
  source: NodeSource,
  sizes: { oldSize: number; size: number },
): Promise<Uint8Array[]> {
  const readNode = await loadNodes(source, listConsistencyNodes(sizes), sizes.size)
  return createConsistencyProof(readNode, sizes)
}

/** The root of a tree that is written. */
export async function readRoot(source: NodeSource, size: number): Promise<Uint8Array> {
  return computeTreeRoot(await loadNodes(source, listTreeNodes(size), size), size)
}

/** All at once, so that proofs are made without waiting. A tree is read from as few tiles as possible. */
async function loadNodes(
  { store, hash, recent }: NodeSource,
  nodes: readonly TreeNode[],
  size: number,
): Promise<ReadNode> {
  const found = new Map(nodes.map((node) => [toName(node), recent?.find(node)]))
  const tiles = new Map<string, Tile>()
  for (const node of nodes) {
    if (found.get(toName(node)) !== undefined) continue
    const tile = toTile(node, size)
    tiles.set(toTilePath(tile), tile)
  }
  const bytes = tiles.size === 0 ? [] : await store.readTiles(hash, [...tiles.values()])
  const read = new Map([...tiles.keys()].map((path, index) => [path, bytes[index]]))
  const readFromTile = createTileReader((tile) => read.get(toTilePath(tile)) as Uint8Array, size)
  return (node) => found.get(toName(node)) ?? readFromTile(node)
}

/** For maps of nodes. */
function toName({ level, index }: TreeNode): string {
  return `${level}/${index}`
}
