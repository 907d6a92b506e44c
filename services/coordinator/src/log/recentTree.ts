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

/** The right edge of a growing tree: its root, and recent nodes for the proofs that witnesses need. */
export type RecentTree = {
  readonly size: number
  computeRoot(): Uint8Array
  /** In hex. */
  append(leaves: readonly string[]): void
  /** Returns undefined for a node that is too old or incomplete. */
  find(node: TreeNode): Uint8Array | undefined
}

/** Nodes per generation. Two generations are cached: enough for witnesses that are a few thousand entries behind. */
const GENERATION = 8_192

export function createRecentTree({ size, hashes }: Frontier): RecentTree {
  let older = new Map<number, string>()
  let newer = new Map<number, string>()
  const edge = createTreeEdge({ size, hashes: hashes.map(toHex) }, cache)
  cacheEdge()

  function cache(level: number, index: number, hash: string) {
    newer.set(toNumber(level, index), hash)
  }

  /** Caches the edge nodes, which the next proofs start from. */
  function cacheEdge() {
    for (const [place, { level, index }] of listTreeNodes(edge.size).entries()) {
      cache(level, index, edge.hashes[place] as string)
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
      cacheEdge()
    },
    find({ level, index }) {
      const number = toNumber(level, index)
      const hash = newer.get(number) ?? older.get(number)
      return hash === undefined ? undefined : fromHex(hash)
    },
  }
}

/** Encodes a node's place as a number. It is exact, because levels are below 64 and sizes below 2^47. */
const toNumber = (level: number, index: number) => index * 64 + level

type NodeSource = {
  store: Pick<LogStore, 'readTiles'>
  /** The log's id in the store. */
  hash: string
  /** Cached nodes. Others are read from the store. */
  recent: Pick<RecentTree, 'find'> | undefined
}

/** Proves that the stored tree of `size` continues the one of `oldSize`. */
export async function proveConsistency(
  source: NodeSource,
  sizes: { oldSize: number; size: number },
): Promise<Uint8Array[]> {
  const readNode = await loadNodes(source, listConsistencyNodes(sizes), sizes.size)
  return createConsistencyProof(readNode, sizes)
}

/** The root of a stored tree. */
export async function readRoot(source: NodeSource, size: number): Promise<Uint8Array> {
  return computeTreeRoot(await loadNodes(source, listTreeNodes(size), size), size)
}

/** Loads all nodes first, from as few tiles as possible, because proofs are computed synchronously. */
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

function toName({ level, index }: TreeNode): string {
  return `${level}/${index}`
}
