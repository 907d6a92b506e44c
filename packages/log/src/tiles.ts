import { concatBytes, HASH_BYTES, hashTree, isNatural } from '@countersign/protocol/core'
import { LogError } from './errors.ts'
import type { TreeNode } from './treeNodes.ts'
import type { ReadNode } from './treeProofs.ts'

/*
 * Tiles, c2sp.org/tlog-tiles: up to 256 hashes of one level. Level 0 has the leaf hashes, and each hash of a higher level is the root of a
 * full
 * tile below.
 */

export const TILE_WIDTH = 256
/** The number of tree levels per level of tiles. */
export const TILE_HEIGHT = 8

/** `width` is 256 for a full tile, and 1 to 255 for a partial tile at the right edge. */
export type Tile = { level: number; index: number; width: number }

/** The entries for the leaves of the level 0 tile with the same index and width. */
export type EntryBundle = { index: number; width: number }

/**
 * The tiles that a tree of `size` has in addition to those of `fromSize`, to be written after new entries.
 *
 * @example
 * listTiles({ size: 70_000 }).length // 273 + 1 of level 0, 1 + 1 of level 1, 1 of level 2
 */
export function listTiles({ size, fromSize = 0 }: { size: number; fromSize?: number }): Tile[] {
  if (!isNatural(size) || !isNatural(fromSize) || fromSize > size) throw malformed('the sizes are out of order')
  const tiles: Tile[] = []
  for (let level = 0; countHashes(size, level) > 0; level++) {
    const count = countHashes(size, level)
    const old = countHashes(fromSize, level)
    if (count === old) break
    for (let index = Math.floor(old / TILE_WIDTH); index * TILE_WIDTH < count; index++) {
      tiles.push({ level, index, width: toWidth(count, index) })
    }
  }
  return tiles
}

/** The tile with a node of a tree of this size: the tile contains the node, or the hashes below it. */
export function toTile({ level, index }: TreeNode, size: number): Tile {
  const isComplete = isNatural(level) && isNatural(index) && isNatural(size) && (index + 1) * 2 ** level <= size
  if (!isComplete) throw malformed('a tree of this size does not have this node')
  const tileLevel = Math.floor(level / TILE_HEIGHT)
  const tileIndex = Math.floor((index * 2 ** (level % TILE_HEIGHT)) / TILE_WIDTH)
  return { level: tileLevel, index: tileIndex, width: toWidth(countHashes(size, tileLevel), tileIndex) }
}

/** Reads nodes of a tree of this size from its tiles. Tiles are untrusted: compare a root with a checkpoint. */
export function createTileReader(readTile: (tile: Tile) => Uint8Array, size: number): ReadNode {
  return (node) => {
    const tile = toTile(node, size)
    const bytes = readTile(tile)
    if (bytes.length !== tile.width * HASH_BYTES) throw malformed('the tile has the wrong width')
    const count = 2 ** (node.level % TILE_HEIGHT)
    const first = (node.index * count) % TILE_WIDTH
    return hashTree(decodeTile(bytes.subarray(first * HASH_BYTES, (first + count) * HASH_BYTES), count))
  }
}

/** 32 bytes for each hash. */
export function encodeTile(hashes: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  if (hashes.length < 1 || hashes.length > TILE_WIDTH) throw malformed('a tile has 1 to 256 hashes')
  if (hashes.some((hash) => hash.length !== HASH_BYTES)) throw malformed('a hash is not 32 bytes')
  return concatBytes(...hashes)
}

export function decodeTile(bytes: Uint8Array, width: number): Uint8Array<ArrayBuffer>[] {
  if (!isWidth(width)) throw malformed('a width is a number from 1 to 256')
  if (bytes.length !== width * HASH_BYTES) throw malformed('the tile has the wrong width')
  return Array.from({ length: width }, (_, index) =>
    Uint8Array.from(bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES)),
  )
}

/** Each entry with its length as a u16be prefix. */
export function encodeBundle(entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  if (entries.length < 1 || entries.length > TILE_WIDTH) throw malformed('a bundle has 1 to 256 entries')
  if (entries.some(({ length }) => length > 0xffff)) throw malformed('an entry has more than 65,535 bytes')
  return concatBytes(...entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]))
}

export function decodeBundle(bytes: Uint8Array, width: number): Uint8Array<ArrayBuffer>[] {
  if (!isWidth(width)) throw malformed('a width is a number from 1 to 256')
  const entries: Uint8Array<ArrayBuffer>[] = []
  let at = 0
  while (entries.length < width) {
    if (at + 2 > bytes.length) throw malformed('the bundle ends too early')
    const length = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
    const end = at + 2 + length
    if (end > bytes.length) throw malformed('the bundle ends too early')
    entries.push(Uint8Array.from(bytes.subarray(at + 2, end)))
    at = end
  }
  if (at !== bytes.length) throw malformed('the bundle has more entries than its width')
  return entries
}

/** `tile/<L>/<N>[.p/<W>]`, below the log's prefix. */
export function toTilePath({ level, index, width }: Tile): string {
  return `tile/${level}/${toPlace({ index, width })}`
}

/** `tile/entries/<N>[.p/<W>]`. */
export function toBundlePath(bundle: EntryBundle): string {
  return `tile/entries/${toPlace(bundle)}`
}

/** Parses the path of a tile or bundle. Throws `tile_malformed` for any other spelling. */
export function parseTilePath(path: string): ({ kind: 'tile' } & Tile) | ({ kind: 'entries' } & EntryBundle) {
  const [, level = '', index = '', width = '256'] =
    /^tile\/([0-9]{1,2}|entries)\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([0-9]{1,3}))?$/.exec(path) ?? []
  const place = { index: Number(index.replaceAll(/[x/]/g, '')), width: Number(width) }
  const parsed =
    level === 'entries'
      ? { kind: 'entries' as const, ...place }
      : { kind: 'tile' as const, level: Number(level), ...place }
  // A second spelling of a tile would be cached separately.
  const isExact = (parsed.kind === 'tile' ? toTilePath(parsed) : toBundlePath(parsed)) === path
  const isInRange = isNatural(place.index) && isWidth(place.width) && (parsed.kind === 'entries' || parsed.level <= 63)
  if (!isExact || !isInRange) throw malformed('not the path of a tile')
  return parsed
}

/** The index in groups of three digits, with an x before all but the last: 1234067 is x001/x234/067. */
function toPlace({ index, width }: EntryBundle): string {
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, '0')
  const groups = digits.match(/.{3}/g) ?? []
  const path = groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join('/')
  return width === TILE_WIDTH ? path : `${path}.p/${width}`
}

/** The number of complete hashes in the tiles of a level, for a tree of this size. */
function countHashes(size: number, level: number): number {
  return Math.floor(size / TILE_WIDTH ** level)
}

function toWidth(count: number, index: number): number {
  return Math.min(TILE_WIDTH, count - index * TILE_WIDTH)
}

function isWidth(width: number): boolean {
  return isNatural(width) && width >= 1 && width <= TILE_WIDTH
}

function malformed(details: string) {
  return new LogError('tile_malformed', 'malformed tile', { details })
}
