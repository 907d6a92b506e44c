import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromHex, hashTreeLeaf } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../test/logs.ts'
import { assertConsistency, assertInclusion } from './checkProofs.ts'
import { toVkey } from './noteKey.ts'
import { openNote, signNote } from './openNote.ts'
import { encodeTile, listTiles, type Tile, toBundlePath, toTilePath } from './tiles.ts'
import { computeTreeRoot, createConsistencyProof, createInclusionProof, createLeafReader } from './treeProofs.ts'

// Created by golang.org/x/mod/sumdb (see vectors/go/main.go). Our output must be the same bytes.
type Vectors = {
  notes: { text: string; seeds: string[]; vkeys: string[]; note: string }[]
  trees: {
    size: number
    root: string
    inclusions: { index: number; proof: string[] }[]
    consistencies: { oldSize: number; proof: string[] }[]
  }[]
  tiles: { fromSize: number; size: number; tiles: { path: string; sha256: string }[] }[]
  paths: { level: number; index: number; width: number; path: string }[]
}
const vectors = JSON.parse(readFileSync(new URL('../vectors/go.vectors.json', import.meta.url), 'utf8')) as Vectors

const all = Array.from({ length: 600 }, (_, index) => hashTreeLeaf(new TextEncoder().encode(`entry ${index}`)))
const read = createLeafReader(all)
const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const fromBase64 = (text: string) => Uint8Array.from(Buffer.from(text, 'base64'))
/** In its paths, the height follows the first word. */
const withoutHeight = (path: string) => path.replace('tile/8/', 'tile/')

describe("Go's checksum database (golang.org/x/mod/sumdb)", () => {
  test('notes: the same keys, and the same signatures', () => {
    expect(vectors.notes).toHaveLength(5)
    for (const { text, seeds, vkeys, note } of vectors.notes) {
      const signers = vkeys.map((vkey, at) =>
        createSigner(vkey.split('+')[0] as string, 'ed25519', fromHex(seeds[at] as string)),
      )
      expect(signers.map(({ key }) => toVkey(key))).toEqual(vkeys)
      expect(signNote(text, signers)).toBe(note)
      expect(
        openNote(
          note,
          signers.map(({ key }) => key),
        ).verified,
      ).toHaveLength(3)
    }
  })

  test('trees: the same roots and proofs, and all are accepted', () => {
    for (const { size, root: rootText, inclusions, consistencies } of vectors.trees) {
      const root = fromBase64(rootText)
      expect(toBase64(computeTreeRoot(read, size))).toBe(rootText)
      for (const { index, proof } of inclusions) {
        expect(createInclusionProof(read, { index, size }).map(toBase64)).toEqual(proof)
        assertInclusion({ leaf: all[index] as Uint8Array, index, size, root, proof: proof.map(fromBase64) })
      }
      for (const { oldSize, proof } of consistencies) {
        expect(createConsistencyProof(read, { oldSize, size }).map(toBase64)).toEqual(proof)
        const oldRoot = computeTreeRoot(read, oldSize)
        assertConsistency({ oldSize, oldRoot, size, root, proof: proof.map(fromBase64) })
      }
    }
    expect(vectors.trees.flatMap(({ consistencies }) => consistencies)).toHaveLength(78)
  })

  test('tiles: the same ones as a tree grows, with the same bytes', () => {
    const toBytes = ({ level, index, width }: Tile) =>
      encodeTile(Array.from({ length: width }, (_, at) => read({ level: 8 * level, index: index * 256 + at })))
    for (const { fromSize, size, tiles } of vectors.tiles) {
      const own = listTiles({ fromSize, size }).map((tile) => ({
        path: toTilePath(tile),
        sha256: createHash('sha256').update(toBytes(tile)).digest('hex'),
      }))
      const theirs = tiles.map(({ path, sha256 }) => ({ path: withoutHeight(path), sha256 }))
      expect(own.toSorted(byPath)).toEqual(theirs.toSorted(byPath))
    }
  })

  test('paths of tiles, and of entries, which Go calls data', () => {
    for (const { level, index, width, path } of vectors.paths) {
      const own = level < 0 ? toBundlePath({ index, width }) : toTilePath({ level, index, width })
      expect(own).toBe(withoutHeight(path).replace('/data/', '/entries/'))
    }
  })
})

function byPath(left: { path: string }, right: { path: string }): number {
  return left.path < right.path ? -1 : 1
}
