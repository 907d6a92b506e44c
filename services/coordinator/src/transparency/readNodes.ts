import {
  computeTreeRoot,
  createConsistencyProof,
  createTileReader,
  listConsistencyNodes,
  listTreeNodes,
  type ReadNode,
  type Tile,
  type TreeNode,
  toTile,
  toTilePath,
} from '@countersign/log'
import type { LogStore } from '../ports.ts'
import type { RecentTree } from './recentTree.ts'

export type NodeSource = {
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
