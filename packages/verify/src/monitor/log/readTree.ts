import {
  appendLeaves,
  computeFrontierRoot,
  decodeBundle,
  decodeLogEntry,
  decodeTile,
  emptyFrontier,
  type Frontier,
  type LogEntry,
  LogError,
  listTiles,
  TILE_WIDTH,
  type Tile,
} from '@countersign/log'
import { equalBytes, hashTree, hashTreeLeaf } from '@countersign/protocol'
import { mapConcurrently } from '../mapConcurrently.ts'
import type { LogSource } from './createLogSource.ts'
import { lies } from './createLogSource.ts'
import { countLeaves, type KnownLog, type KnownTree } from './logMemory.ts'

export type ReadTreeParameters = {
  origin: string
  size: number
  /** The known tree. Its entries are not fetched again. */
  known: Pick<KnownLog, 'tiles' | 'tail' | 'tables' | 'entries'> | undefined
  /** The keys whose entries are kept, in addition to boots. */
  keyIds: ReadonlySet<string>
}

export type ReadTree = KnownTree & {
  entries: Map<number, LogEntry>
  /** The kind of the last entry. */
  last: LogEntry['kind'] | undefined
}

/**
 * All entries of a log up to a size, and their tree, which must match the log's tiles. Throws a `LogFault`. The caller must compare the tree
 * with a checkpoint.
 */
export async function readTree(source: LogSource, parameters: ReadTreeParameters): Promise<ReadTree> {
  const { origin, size, known = { tiles: [], tail: [], tables: 0, entries: new Map() }, keyIds } = parameters
  const entries = new Map(known.entries)
  const first = known.tiles.length
  const knownSize = countLeaves(known)
  let { tables } = known
  let last: ReadTree['last']
  const bundles = Array.from({ length: Math.ceil(size / TILE_WIDTH) - first }, (_, at) => first + at)
  const parts = await mapConcurrently(bundles, async (index) => {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH)
    const [read, tile] = await Promise.all([
      readBundle(source, origin, { index, width }),
      readTile(source, origin, { level: 0, index, width }),
    ])
    assertTile(tile, read.leaves, { level: 0, index })
    if (index === first) assertSame(known.tail, read.leaves, index)
    for (const [at, entry] of read.entries.entries()) {
      const place = index * TILE_WIDTH + at
      if (entry.kind === 'table' && place >= knownSize) tables += 1
      if (place === size - 1) last = entry.kind
      const isKept = entry.kind === 'boot' || (entry.kind !== 'table' && keyIds.has(entry.keyId))
      if (isKept) entries.set(place, entry)
    }
    return width === TILE_WIDTH ? { tile: hashTree(read.leaves) } : { tail: read.leaves }
  })
  const tiles = [...known.tiles, ...parts.flatMap(({ tile }) => tile ?? [])]
  await compareUpperTiles(source, { origin, size, fromSize: knownSize, tiles })
  return { tiles, tail: parts.at(-1)?.tail ?? [], tables, entries, last }
}

/** The roots of smaller trees, by their size. */
export async function computeRoots(
  source: LogSource,
  { origin, tree, sizes }: { origin: string; tree: KnownTree; sizes: readonly number[] },
): Promise<Map<number, Uint8Array>> {
  const roots = new Map<number, Uint8Array>()
  let upper: Frontier = emptyFrontier
  for (const size of [...new Set(sizes)].toSorted((a, b) => a - b)) {
    const index = Math.floor(size / TILE_WIDTH)
    upper = appendLeaves(upper, tree.tiles.slice(upper.size, index))
    const count = size % TILE_WIDTH
    const leaves = count === 0 ? [] : await readLeaves(source, { origin, tree, index })
    const lower = appendLeaves(emptyFrontier, leaves.slice(0, count))
    roots.set(size, computeFrontierRoot({ size, hashes: [...upper.hashes, ...lower.hashes] }))
  }
  return roots
}

/** The leaf hashes of a tile, which must match the known one. */
async function readLeaves(
  source: LogSource,
  { origin, tree, index }: { origin: string; tree: KnownTree; index: number },
): Promise<readonly Uint8Array[]> {
  const root = tree.tiles[index]
  if (root === undefined) return tree.tail
  const { leaves } = await readBundle(source, origin, { index, width: TILE_WIDTH })
  if (!equalBytes(hashTree(leaves), root)) throw lies(`the bundle ${index} differs from the one seen before`)
  return leaves
}

async function readBundle(source: LogSource, origin: string, bundle: { index: number; width: number }) {
  const bytes = await source.getBundle(origin, bundle)
  try {
    const raw = decodeBundle(bytes, bundle.width)
    return { entries: raw.map(decodeLogEntry), leaves: raw.map(hashTreeLeaf) }
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    throw lies(`the bundle ${bundle.index}: ${error.message}, ${error.details}`)
  }
}

function assertSame(seen: readonly Uint8Array[], leaves: readonly Uint8Array[], index: number): void {
  const changed = seen.findIndex((leaf, at) => !isHash(leaf, leaves[at]))
  if (changed < 0) return
  throw lies(`it shows two histories: its entry ${index * TILE_WIDTH + changed} differs from the one seen before`)
}

/** The new tiles. Readers that use tiles must see the same tree. */
async function compareUpperTiles(
  source: LogSource,
  parameters: { origin: string; size: number; fromSize: number; tiles: readonly Uint8Array[] },
): Promise<void> {
  const { origin, size, fromSize, tiles } = parameters
  const levels: (readonly Uint8Array[])[] = [[], tiles]
  const readLevel = (level: number): readonly Uint8Array[] => {
    levels[level] ??= toRoots(readLevel(level - 1))
    return levels[level]
  }
  const upper = listTiles({ size, fromSize }).filter(({ level }) => level > 0)
  await mapConcurrently(upper, async (tile) => {
    const { level, index, width } = tile
    const start = index * TILE_WIDTH
    assertTile(await readTile(source, origin, tile), readLevel(level).slice(start, start + width), tile)
  })
}

async function readTile(source: LogSource, origin: string, tile: Tile): Promise<Uint8Array[]> {
  const bytes = await source.getTile(origin, tile)
  try {
    return decodeTile(bytes, tile.width)
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    throw lies(`tile ${tile.index} of level ${tile.level}: ${error.details}`)
  }
}

function assertTile(
  served: readonly Uint8Array[],
  expected: readonly Uint8Array[],
  { level, index }: Pick<Tile, 'level' | 'index'>,
): void {
  const isSame = served.length === expected.length && served.every((hash, at) => isHash(hash, expected[at]))
  if (!isSame) throw lies(`tile ${index} of level ${level} does not match its entries`)
}

function toRoots(hashes: readonly Uint8Array[]): Uint8Array[] {
  const count = Math.floor(hashes.length / TILE_WIDTH)
  return Array.from({ length: count }, (_, at) => hashTree(hashes.slice(at * TILE_WIDTH, (at + 1) * TILE_WIDTH)))
}

function isHash(hash: Uint8Array, expected: Uint8Array | undefined): boolean {
  return expected !== undefined && equalBytes(hash, expected)
}
