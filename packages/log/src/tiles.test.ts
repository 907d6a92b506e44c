import { hashTree, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { leaves } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import {
  createTileReader,
  decodeBundle,
  decodeTile,
  encodeBundle,
  encodeTile,
  listTiles,
  parseTilePath,
  type Tile,
  toBundlePath,
  toTile,
  toTilePath,
} from './tiles.ts'
import {
  computeTreeRoot,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  listInclusionNodes,
} from './treeProofs.ts'

const malformed = withCode('tile_malformed')

describe('tiles (c2sp.org/tlog-tiles)', () => {
  test('a tree of 70,000 has as many tiles as the specification counts', () => {
    const tiles = listTiles({ size: 70_000 })
    const count = (level: number, isFull: boolean) =>
      tiles.filter((tile) => tile.level === level && (tile.width === 256) === isFull).length
    expect([count(0, true), count(0, false), count(1, true), count(1, false), count(2, false)]).toEqual([
      273, 1, 1, 1, 1,
    ])
    expect(tiles.filter(({ width }) => width < 256).map(({ width }) => width)).toEqual([112, 17, 1])
    expect(listTiles({ size: 256 }).map(toTilePath)).toEqual(['tile/0/000', 'tile/1/000.p/1'])
  })

  test('writing them as the tree grows, in steps of any length, gives all tiles', () => {
    const written = new Map<string, Tile>()
    for (const [fromSize, size] of [
      [0, 1],
      [1, 255],
      [255, 256],
      [256, 257],
      [257, 70_000],
      [70_000, 70_000],
      [70_000, 131_072],
    ] as const) {
      for (const tile of listTiles({ fromSize, size })) written.set(toTilePath(tile), tile)
      expect(listTiles({ size }).filter((tile) => !written.has(toTilePath(tile)))).toEqual([])
    }
  })

  test('proofs from tiles equal proofs from leaves', () => {
    const size = 600
    const list = leaves(size)
    const fromLeaves = createLeafReader(list)
    const stored = new Map<string, Uint8Array>()
    for (const tile of listTiles({ size })) {
      const hashes = Array.from({ length: tile.width }, (_, at) => {
        const width = 256 ** tile.level
        const start = (tile.index * 256 + at) * width
        return hashTree(list.slice(start, start + width))
      })
      stored.set(toTilePath(tile), encodeTile(hashes))
    }
    const fromTiles = createTileReader((tile) => stored.get(toTilePath(tile)) ?? new Uint8Array(), size)
    expect(toHex(computeTreeRoot(fromTiles, size))).toBe(toHex(hashTree(list)))
    for (const index of [0, 1, 255, 256, 511, 512, 599]) {
      expect(createInclusionProof(fromTiles, { index, size })).toEqual(
        createInclusionProof(fromLeaves, { index, size }),
      )
      const paths = listInclusionNodes({ index, size }).map((node) => toTilePath(toTile(node, size)))
      expect(paths.filter((path) => !stored.has(path))).toEqual([])
    }
    for (const oldSize of [1, 255, 256, 257, 512, 599]) {
      const parameters = { oldSize, size }
      expect(createConsistencyProof(fromTiles, parameters)).toEqual(createConsistencyProof(fromLeaves, parameters))
    }
    expect(() => fromTiles({ level: 10, index: 0 })).toThrow(malformed)
    expect(() => fromTiles({ level: 0, index: 600 })).toThrow(malformed)
    const withheld = createTileReader(() => new Uint8Array(32 * 255), size)
    expect(() => computeTreeRoot(withheld, size)).toThrow(malformed)
  })

  test.each([
    [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
    [{ level: 5, index: 1_234_067, width: 256 }, 'tile/5/x001/x234/067'],
    [{ level: 63, index: 999, width: 255 }, 'tile/63/999.p/255'],
    [{ level: 1, index: 1_000, width: 1 }, 'tile/1/x001/000.p/1'],
  ])('%j is at %s', (tile, path) => {
    expect(toTilePath(tile)).toBe(path)
    expect(parseTilePath(path)).toEqual({ kind: 'tile', ...tile })
    const entries = { index: tile.index, width: tile.width }
    expect(parseTilePath(toBundlePath(entries))).toEqual({ kind: 'entries', ...entries })
  })

  test.each([
    '',
    'tile',
    'tile/0',
    'tile/0/0',
    'tile/0/00',
    'tile/0/0000',
    'tile/00/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/0/000/',
    '/tile/0/000',
    'tile/0/x000/000',
    'tile/0/x001/x000',
    'tile/0/001/000',
    'tile/0/X001/000',
    'tile/0/000.p/0',
    'tile/0/000.p/00',
    'tile/0/000.p/01',
    'tile/0/000.p/256',
    'tile/0/000.p/999',
    'tile/0/000.p/',
    'tile/0/000.p',
    'tile/0/000.p/1/',
    'tile/0/../000',
    'tile/0/000?x',
    'tile/0/000\n',
    'tile/Entries/000',
    'tile/entries/x000/000',
    'tile/data/000',
    'tile/0/x009/x007/x199/x254/x740/992',
    'tile/0/x001/x000/x000/x000/x000/x000/000',
  ])('%j is the path of nothing', (path) => {
    expect(() => parseTilePath(path)).toThrow(malformed)
  })

  test('rejects a tile of another width', () => {
    const hashes = leaves(5)
    expect(decodeTile(encodeTile(hashes), 5)).toEqual(hashes)
    for (const width of [0, 4, 6, 257, -1, 1.5]) expect(() => decodeTile(encodeTile(hashes), width)).toThrow(malformed)
    expect(() => decodeTile(encodeTile(hashes).subarray(1), 5)).toThrow(malformed)
    expect(() => encodeTile([])).toThrow(malformed)
    expect(() => encodeTile(leaves(257))).toThrow(malformed)
    expect(() => encodeTile([new Uint8Array(31)])).toThrow(malformed)
  })

  test('rejects sizes out of order', () => {
    expect(() => listTiles({ size: 5, fromSize: 6 })).toThrow(malformed)
    expect(() => listTiles({ size: -1 })).toThrow(malformed)
    expect(() => toTile({ level: 0, index: 5 }, 5)).toThrow(malformed)
  })
})

describe('bundles of entries', () => {
  const entries = [Uint8Array.of(), Uint8Array.of(1), new Uint8Array(300).fill(2), new Uint8Array(65_535).fill(3)]

  test('each entry follows its length', () => {
    const bytes = encodeBundle(entries)
    expect(toHex(bytes.subarray(0, 7))).toBe('0000000101012c')
    expect(decodeBundle(bytes, 4)).toEqual(entries)
  })

  test.each([
    ['fewer entries than its width', 5],
    ['more entries than its width', 3],
    ['a width of nothing', 0],
    ['a width beyond a tile', 257],
  ])('rejects %s', (_, width) => {
    expect(() => decodeBundle(encodeBundle(entries), width)).toThrow(malformed)
  })

  test('rejects a bundle that is cut off anywhere', () => {
    const bytes = encodeBundle(entries.slice(0, 3))
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeBundle(bytes.subarray(0, length), 3)).toThrow(malformed)
    }
  })

  test('rejects an entry of 65,536 bytes, no entries and 257 entries', () => {
    expect(() => encodeBundle([new Uint8Array(65_536)])).toThrow(malformed)
    expect(() => encodeBundle([])).toThrow(malformed)
    expect(() => encodeBundle(Array.from({ length: 257 }, () => Uint8Array.of()))).toThrow(malformed)
  })
})
