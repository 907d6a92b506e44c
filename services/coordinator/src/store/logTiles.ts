import {
  createTileReader,
  type EntryBundle,
  encodeBundle,
  type ReadNode,
  TILE_WIDTH,
  type Tile,
  type TreeNode,
  toTile,
  toTilePath,
} from '@countersign/log'
import { type Kysely, sql } from 'kysely'
import { toBytes } from './bytes.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'

const HASH_BYTES = 32

/** The hashes of tiles, each side by side. Throws where one is not all there. */
export async function readTiles(db: Kysely<Tables>, hash: string, tiles: readonly Tile[]): Promise<Uint8Array[]> {
  if (tiles.length === 0) return []
  const { rows } = await sql<{ hashes: Uint8Array | null }>`${sql.raw(PREPARED)}
    select case level when 0 then (
      select string_agg(sha256('\\x00'::bytea || entry), ''::bytea order by index) from log_entries
      where log_id = log.id and index >= first and index < first + width
    ) else (
      select string_agg(hash, ''::bytea order by index) from log_nodes as n
      where log_id = log.id and n.level = t.level and index >= first and index < first + width
    ) end as hashes
    from (select id from logs where hash = ${toBytes(hash)}::bytea) as log
    cross join lateral (
      select level, ${TILE_WIDTH}::bigint * tile as first, width, place
      from unnest(
        ${tiles.map(({ level }) => level)}::integer[],
        ${tiles.map(({ index }) => index)}::bigint[],
        ${tiles.map(({ width }) => width)}::integer[]
      ) with ordinality as asked (level, tile, width, place)
    ) as t
    order by place`.execute(db)
  return tiles.map(({ width }, place) => {
    const hashes = rows[place]?.hashes
    if (hashes?.length !== HASH_BYTES * width) throw new Error('a tile of the log is not all there')
    return hashes
  })
}

/** A bundle of entries. Undefined where they are not all there. */
export async function readBundle(
  db: Kysely<Tables>,
  hash: string,
  { index, width }: EntryBundle,
): Promise<Uint8Array | undefined> {
  const rows = await db
    .selectFrom('log_entries as e')
    .innerJoin('logs as l', 'l.id', 'e.log_id')
    .where('l.hash', '=', toBytes(hash))
    .where('e.index', '>=', index * TILE_WIDTH)
    .where('e.index', '<', index * TILE_WIDTH + width)
    .select('e.entry')
    .orderBy('e.index')
    .execute()
  return rows.length === width ? encodeBundle(rows.map(({ entry }) => entry)) : undefined
}

/** Fetches what these nodes of a tree are read from, and returns what reads them. */
export async function readNodes(
  db: Kysely<Tables>,
  { hash, size, nodes }: { hash: string; size: number; nodes: readonly TreeNode[] },
): Promise<ReadNode> {
  const tiles = new Map(nodes.map((node) => toTile(node, size)).map((tile) => [toTilePath(tile), tile]))
  const hashes = await readTiles(db, hash, [...tiles.values()])
  const byPath = new Map([...tiles.keys()].map((path, place) => [path, hashes[place]]))
  return createTileReader((tile) => byPath.get(toTilePath(tile)) ?? new Uint8Array(), size)
}
