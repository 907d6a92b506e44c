import {
  decodeTile,
  type EntryBundle,
  encodeBundle,
  LOG_ENTRY_BYTES,
  type ReadNode,
  TILE_HEIGHT,
  TILE_WIDTH,
  type Tile,
  type TreeNode,
} from '@countersign/log'
import { HASH_BYTES, hashTree } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { splitBytes, toBytes, toList } from './values.ts'

const MAX_NODES = 16_384

/** A range of hashes in the tiles of one level. Level 0 holds the hashes of entries. */
type Range = { level: number; first: number; width: number }

/** Returns the hashes of each tile, concatenated. Throws if a tile is incomplete. */
export function readTiles(db: Kysely<Tables>, hash: string, tiles: readonly Tile[]): Promise<Uint8Array[]> {
  return readRanges(
    db,
    hash,
    tiles.map(({ level, index, width }) => ({ level, first: index * TILE_WIDTH, width })),
  )
}

/** Returns a bundle of entries, or undefined if it is incomplete. */
export async function readBundle(
  db: Kysely<Tables>,
  hash: string,
  { index, width }: EntryBundle,
): Promise<Uint8Array | undefined> {
  const { rows } = await sql<{ entries: Uint8Array | null }>`
    select read_log_entries(id, ${index * TILE_WIDTH}::bigint, ${width}::bigint) as entries
    from logs where hash = ${toBytes(hash)}::bytea`.execute(db)
  const entries = rows[0]?.entries
  if (entries?.length !== LOG_ENTRY_BYTES * width) return undefined
  return encodeBundle(splitBytes(entries, LOG_ENTRY_BYTES))
}

/** Fetches nodes of a log's tree, and returns a function that reads them. */
export type FetchNodes = (hash: string, nodes: readonly TreeNode[]) => Promise<ReadNode>

/** Caches recent nodes: a complete node never changes, and proofs of neighbours share most of theirs. */
export function createNodeReader(db: Kysely<Tables>, maxNodes = MAX_NODES): FetchNodes {
  const known = new Map<string, Uint8Array>()
  return async (hash, nodes) => {
    const toKey = ({ level, index }: TreeNode) => `${hash}/${level}/${index}`
    // Read the cache now: loading other nodes may evict these.
    const found = new Map(nodes.map((node) => [toKey(node), known.get(toKey(node))]))
    const unknown = new Map(
      nodes.flatMap((node) => (found.get(toKey(node)) === undefined ? [[toKey(node), toRange(node)]] : [])),
    )
    // One range of each tile, because neighbours ask for most of its hashes.
    const tiles = [...Map.groupBy(unknown, ([, { level, first }]) => `${level}/${Math.floor(first / TILE_WIDTH)}`)]
    const merged = tiles.map(([, ofTile]) => mergeRanges(ofTile.map(([, range]) => range)))
    const read = await readRanges(db, hash, merged)
    for (const [place, [, ofTile]] of tiles.entries()) {
      const start = merged[place]?.first ?? 0
      for (const [key, { first, width }] of ofTile) {
        const hashes = read[place]?.subarray((first - start) * HASH_BYTES, (first - start + width) * HASH_BYTES)
        // Copy, because a slice would keep the whole buffer in memory.
        const node = new Uint8Array(hashTree(decodeTile(hashes ?? new Uint8Array(), width)))
        found.set(key, node)
        known.set(key, node)
      }
    }
    for (const oldest of known.keys()) {
      if (known.size <= maxNodes) break
      known.delete(oldest)
    }
    return (node) => found.get(toKey(node)) as Uint8Array
  }
}

/** The hashes below a node in its tile. */
function toRange({ level, index }: TreeNode): Range {
  const width = 2 ** (level % TILE_HEIGHT)
  return { level: Math.floor(level / TILE_HEIGHT), first: index * width, width }
}

/** The range from the first to the last hash of ranges in one tile. */
function mergeRanges(ranges: readonly Range[]): Range {
  const first = Math.min(...ranges.map((range) => range.first))
  const end = Math.max(...ranges.map((range) => range.first + range.width))
  return { level: ranges[0]?.level ?? 0, first, width: end - first }
}

async function readRanges(db: Kysely<Tables>, hash: string, ranges: readonly Range[]): Promise<Uint8Array[]> {
  if (ranges.length === 0) return []
  const list = (read: (range: Range) => number, type: 'bigint' | 'integer') => toList(ranges.map(read), type)
  const { rows } = await sql<{ hashes: Uint8Array | null }>`${sql.raw(PREPARED)}
    select case asked.level when 0 then hash_log_entries(read_log_entries(log.id, first, width)) else (
      select string_agg(hash, ''::bytea order by index) from log_nodes as n
      where log_id = log.id and n.level = asked.level and index >= first and index < first + width
    ) end as hashes
    from (select id from logs where hash = ${toBytes(hash)}::bytea) as log
    cross join unnest(
      ${list(({ level }) => level, 'integer')}, ${list(({ first }) => first, 'bigint')}, ${list(({ width }) => width, 'integer')}
    ) with ordinality as asked (level, first, width, place)
    order by place`.execute(db)
  return ranges.map(({ width }, place) => {
    const hashes = rows[place]?.hashes
    if (hashes?.length !== HASH_BYTES * width) throw new Error('a part of the log is not all there')
    return hashes
  })
}
