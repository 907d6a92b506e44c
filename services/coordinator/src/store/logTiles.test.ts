import {
  assertInclusion,
  createInclusionProof,
  createLeafReader,
  decodeBundle,
  encodeTile,
  listInclusionNodes,
  listTiles,
  type Tile,
} from '@countersign/log'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CLAIM_MS, createTestLog } from '../../test/store/logs.ts'
import { NOW, startTestStore, type TestStore } from '../../test/store/store.ts'
import { createNodeReader } from './logTiles.ts'

describe('tiles and proofs of a log with 65,537 entries', () => {
  const sizes = [1, 255, 256, 257, 1_000, 65_536, 65_537]
  const log = createTestLog()
  log.fill(65_536)
  const leaves = log.entries.map(hashTreeLeaf)
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
    let from = 0
    for (const to of [...sizes, ...Array.from({ length: 254 }, (_, piece) => 1_000 + piece * 255)].sort(
      (a, b) => a - b,
    )) {
      const entries = log.entries.slice(from, to)
      // The expected roots are constants, because computing them would take minutes.
      const checkpoint = { size: to, root: new Uint8Array(32), note: `${to}` }
      const { origin, key, bootId } = log
      const rest = { claims: [], states: [], claimMs: CLAIM_MS, now: NOW }
      await subject.logStore.appendLog({ origin, key, bootId, from, entries, checkpoint, ...rest })
      from = to
    }
  })
  afterAll(() => subject.stop())

  const toHashes = ({ level, index, width }: Tile) => {
    const span = 256 ** level
    const first = index * 256
    return Array.from({ length: width }, (_, place) =>
      hashTree(leaves.slice((first + place) * span, (first + place + 1) * span)),
    )
  }

  test.each(sizes)('the tiles of %i entries equal those computed in memory', async (size) => {
    const all = listTiles({ size })
    // Of level 0 only the first and last few.
    const tiles = all.filter(({ level }, place) => level > 0 || place < 3 || place > all.length - 6)
    const read = await subject.logStore.readTiles(log.hash, tiles)
    for (const [place, tile] of tiles.entries()) {
      expect(Buffer.from(read[place] ?? []).equals(encodeTile(toHashes(tile)))).toBe(true)
    }
    const last = { index: Math.floor((size - 1) / 256), width: ((size - 1) % 256) + 1 }
    const bundle = await subject.logStore.readBundle(log.hash, last)
    expect(bundle && decodeBundle(bundle, last.width)).toEqual(log.entries.slice(last.index * 256, size))
  })

  test('there is no tile beyond the end', async () => {
    for (const tile of [
      { level: 0, index: 256, width: 2 },
      { level: 0, index: 257, width: 1 },
      { level: 1, index: 1, width: 1 },
      { level: 2, index: 0, width: 2 },
      { level: 3, index: 0, width: 1 },
    ]) {
      await expect(subject.logStore.readTiles(log.hash, [tile])).rejects.toThrow('not all there')
    }
  })

  test.each([1, 2, 3, 255, 256, 257, 300])('every entry of %i has a proof', async (size) => {
    const fetchNodes = createNodeReader(subject.database.db)
    const readLeaf = createLeafReader(leaves.slice(0, size))
    for (let index = 0; index < size; index++) {
      const nodes = listInclusionNodes({ index, size })
      const readNode = await fetchNodes(log.hash, nodes)
      expect(createInclusionProof(readNode, { index, size })).toEqual(createInclusionProof(readLeaf, { index, size }))
      // A cached node doesn't keep the bytes that it was read with.
      for (const node of nodes) expect(readNode(node).buffer.byteLength).toBe(32)
    }
  })

  test('proofs in large trees verify, with shared nodes', async () => {
    const fetchNodes = createNodeReader(subject.database.db)
    for (const size of [1_000, 65_536, 65_537]) {
      const root = hashTree(leaves.slice(0, size))
      for (let index = 0; index < size; index += 1 + Math.floor(size / 40)) {
        const readNode = await fetchNodes(log.hash, listInclusionNodes({ index, size }))
        const proof = createInclusionProof(readNode, { index, size })
        const leaf = leaves[index] as Uint8Array
        expect(() => assertInclusion({ index, size, root, proof, leaf })).not.toThrow()
      }
    }
  })

  test('returns a node that others evict meanwhile', async () => {
    const fetchNodes = createNodeReader(subject.database.db, 1)
    const [shared, ...others] = [0, 1, 2].map((index) => ({ level: 0, index }))
    if (shared === undefined) throw new Error('there are three')
    await fetchNodes(log.hash, [shared])
    const readers = await Promise.all(others.map((other) => fetchNodes(log.hash, [shared, other])))
    for (const readNode of readers) expect(readNode(shared)).toEqual(leaves[0])
    expect(others.map((other, place) => readers[place]?.(other))).toEqual(leaves.slice(1, 3))
  })

  test('a node beyond the end is missing until it is stored', async () => {
    const fetchNodes = createNodeReader(subject.database.db)
    const node = { level: 1, index: 32_768 }
    await expect(fetchNodes(log.hash, [node])).rejects.toThrow('not all there')
    log.fill(1)
    const { origin, key, bootId } = log
    const rest = {
      from: 65_537,
      entries: log.entries.slice(65_537),
      claims: [],
      states: [],
      claimMs: CLAIM_MS,
      now: NOW,
    }
    const checkpoint = { size: 65_538, root: new Uint8Array(32), note: '65538' }
    await subject.logStore.appendLog({ origin, key, bootId, checkpoint, ...rest })
    const readNode = await fetchNodes(log.hash, [node])
    expect(readNode(node)).toEqual(hashTree(log.entries.slice(65_536).map(hashTreeLeaf)))
  })
})
