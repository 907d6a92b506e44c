import { createHash } from 'node:crypto'
import { hashTree, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { leaves } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { assertConsistency, assertInclusion } from './checkProofs.ts'
import { emptyRoot } from './checkpoint.ts'
import { appendLeaves, assertFrontier, computeFrontierRoot, emptyFrontier } from './frontier.ts'
import { listTreeNodes } from './treeNodes.ts'
import {
  computeTreeRoot,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  listConsistencyNodes,
  listInclusionNodes,
  type ReadNode,
} from './treeProofs.ts'

const sha256 = (...parts: Uint8Array[]) => Uint8Array.from(createHash('sha256').update(Buffer.concat(parts)).digest())
const hex = (hashes: readonly Uint8Array[]) => hashes.map(toHex)

/** k of RFC 6962 §2.1. */
function split(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}

/** MTH of RFC 6962 §2.1, word for word. */
function naiveRoot(list: readonly Uint8Array[]): Uint8Array {
  if (list.length === 0) return sha256()
  if (list.length === 1) return list[0] as Uint8Array
  const k = split(list.length)
  return sha256(Uint8Array.of(1), naiveRoot(list.slice(0, k)), naiveRoot(list.slice(k)))
}

/** PATH of RFC 6962 §2.1.1. */
function naivePath(m: number, list: readonly Uint8Array[]): Uint8Array[] {
  if (list.length === 1) return []
  const k = split(list.length)
  if (m < k) return [...naivePath(m, list.slice(0, k)), naiveRoot(list.slice(k))]
  return [...naivePath(m - k, list.slice(k)), naiveRoot(list.slice(0, k))]
}

/** SUBPROOF of RFC 6962 §2.1.2. */
function naiveProof(m: number, list: readonly Uint8Array[], isWhole = true): Uint8Array[] {
  if (m === list.length) return isWhole ? [] : [naiveRoot(list)]
  const k = split(list.length)
  if (m <= k) return [...naiveProof(m, list.slice(0, k), isWhole), naiveRoot(list.slice(k))]
  return [...naiveProof(m - k, list.slice(k), false), naiveRoot(list.slice(0, k))]
}

const MOST = 40
const all = leaves(MOST)
const read = createLeafReader(all)
const roots = Array.from({ length: MOST + 1 }, (_, size) => naiveRoot(all.slice(0, size)))
const rootOf = (size: number) => roots[size] as Uint8Array

describe('proofs (RFC 6962 §2.1)', () => {
  test('for every leaf of every size up to 40, root and path match the RFC, and the path is accepted', () => {
    for (let size = 1; size <= MOST; size++) {
      expect(toHex(computeTreeRoot(read, size))).toBe(toHex(rootOf(size)))
      for (let index = 0; index < size; index++) {
        const proof = createInclusionProof(read, { index, size })
        expect(hex(proof)).toEqual(hex(naivePath(index, all.slice(0, size))))
        assertInclusion({ leaf: all[index] as Uint8Array, index, size, root: rootOf(size), proof })
      }
    }
  })

  test('for every pair of sizes up to 40, the proof matches the RFC and is accepted', () => {
    for (let size = 1; size <= MOST; size++) {
      for (let oldSize = 1; oldSize <= size; oldSize++) {
        const proof = createConsistencyProof(read, { oldSize, size })
        expect(hex(proof)).toEqual(hex(naiveProof(oldSize, all.slice(0, size))))
        assertConsistency({ oldSize, oldRoot: rootOf(oldSize), size, root: rootOf(size), proof })
      }
    }
  })

  test('rejects a proof for another pair of sizes or another root, and with a missing, extra or changed hash', () => {
    for (const [oldSize, size] of [
      [1, 2],
      [3, 7],
      [4, 8],
      [6, 8],
      [8, 13],
      [16, 40],
      [23, 40],
    ] as const) {
      const proof = createConsistencyProof(read, { oldSize, size })
      const right = { oldSize, oldRoot: rootOf(oldSize), size, root: rootOf(size), proof }
      const other = Uint8Array.from(rootOf(size)).fill(7, 0, 1)
      const wrong = [
        { oldRoot: other },
        { root: other },
        { oldRoot: right.root, root: right.oldRoot },
        { proof: proof.slice(1) },
        { proof: proof.slice(0, -1) },
        { proof: [...proof, other] },
        { proof: [other, ...proof] },
        { proof: [] },
        ...proof.map((_, at) => ({ proof: proof.with(at, other) })),
        { oldSize: size, size: oldSize },
        { oldSize: oldSize + 0.5 },
        { proof: proof.with(0, new Uint8Array(31)) },
        { root: new Uint8Array(31) },
        { proof: Array.from({ length: 64 }, () => other) },
      ]
      for (const change of wrong) {
        expect(() => assertConsistency({ ...right, ...change })).toThrow(withCode('consistency_invalid'))
      }
    }
  })

  test('rejects a leaf at another index, and with a missing, extra or changed hash', () => {
    const size = 21
    for (let index = 0; index < size; index++) {
      const proof = createInclusionProof(read, { index, size })
      const right = { leaf: all[index] as Uint8Array, index, size, root: rootOf(size), proof }
      const other = Uint8Array.from(rootOf(size)).fill(7, 0, 1)
      const wrong = [
        { leaf: other },
        { root: other },
        { index: index + 1 },
        { index: -1 },
        { proof: proof.slice(1) },
        { proof: [...proof, other] },
        ...proof.map((_, at) => ({ proof: proof.with(at, other) })),
        { size: 2 ** 53 },
        { proof: Array.from({ length: 64 }, () => other) },
      ]
      for (const change of wrong) {
        expect(() => assertInclusion({ ...right, ...change })).toThrow(withCode('inclusion_invalid'))
      }
    }
  })

  test('every tree continues the empty tree, with an empty proof; a tree of the same size must be equal', () => {
    const empty = { oldSize: 0, oldRoot: emptyRoot, size: 5, root: rootOf(5), proof: [] }
    assertConsistency(empty)
    assertConsistency({ ...empty, size: 0, root: emptyRoot })
    assertConsistency({ oldSize: 5, oldRoot: rootOf(5), size: 5, root: rootOf(5), proof: [] })
    for (const wrong of [
      { ...empty, proof: [rootOf(5)] },
      { ...empty, oldRoot: rootOf(1) },
      { ...empty, size: 0 },
      { oldSize: 5, oldRoot: rootOf(5), size: 5, root: rootOf(6), proof: [] },
      { oldSize: 5, oldRoot: rootOf(5), size: 5, root: rootOf(5), proof: [rootOf(5)] },
    ]) {
      expect(() => assertConsistency(wrong)).toThrow(withCode('consistency_invalid'))
    }
  })

  test.each([
    { index: 5, size: 5 },
    { index: -1, size: 5 },
    { index: 0, size: 0 },
    { index: 0.5, size: 5 },
    { index: 0, size: 2 ** 53 },
  ])('rejects leaf $index of $size', (parameters) => {
    expect(() => createInclusionProof(read, parameters)).toThrow(withCode('tree_range_invalid'))
  })

  test('rejects a larger size before a smaller one, and missing leaves', () => {
    expect(() => createConsistencyProof(read, { oldSize: 6, size: 5 })).toThrow(withCode('tree_range_invalid'))
    expect(() => computeTreeRoot(read, MOST + 1)).toThrow(withCode('tree_range_invalid'))
    expect(() => computeTreeRoot(read, -1)).toThrow(withCode('tree_range_invalid'))
    expect(() => listTreeNodes(Number.NaN)).toThrow(withCode('tree_range_invalid'))
  })
})

describe('trees of any size up to 2^53 - 1', () => {
  // All leaves are equal, so every node can be computed.
  const levels = [sha256(Uint8Array.of(9))]
  for (let level = 1; level <= 53; level++) {
    const below = levels[level - 1] as Uint8Array
    levels.push(sha256(Uint8Array.of(1), below, below))
  }
  const readEqual: ReadNode = ({ level }) => levels[level] as Uint8Array
  const sizes = [2 ** 31 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 40 + 12_345, 2 ** 52 + 1, Number.MAX_SAFE_INTEGER]

  test.each(sizes)('%s: creates and accepts proofs, and the frontier has the same root', (size) => {
    const root = computeTreeRoot(readEqual, size)
    for (const index of [0, 1, 2 ** 31 - 1, Math.floor(size / 2), size - 2, size - 1]) {
      if (index >= size) continue
      const proof = createInclusionProof(readEqual, { index, size })
      assertInclusion({ leaf: levels[0] as Uint8Array, index, size, root, proof })
      expect(() => assertInclusion({ leaf: root, index, size, root, proof })).toThrow(withCode('inclusion_invalid'))
    }
    for (const oldSize of [1, 2 ** 30 + 7, Math.floor(size / 2), size - 1]) {
      const proof = createConsistencyProof(readEqual, { oldSize, size })
      expect(proof.length).toBeLessThanOrEqual(63)
      const oldRoot = computeTreeRoot(readEqual, oldSize)
      assertConsistency({ oldSize, oldRoot, size, root, proof })
      expect(() => assertConsistency({ oldSize, oldRoot: root, size, root, proof })).toThrow(
        withCode('consistency_invalid'),
      )
    }
    const frontier = { size, hashes: listTreeNodes(size).map(readEqual) }
    assertFrontier(frontier)
    expect(computeFrontierRoot(frontier)).toEqual(root)
    if (size === Number.MAX_SAFE_INTEGER) {
      expect(() => appendLeaves(frontier, [root])).toThrow(withCode('frontier_malformed'))
    } else {
      const next = appendLeaves(frontier, [levels[0] as Uint8Array])
      expect(computeFrontierRoot(next)).toEqual(computeTreeRoot(readEqual, size + 1))
    }
  })

  test('a proof needs only a few nodes, all of them complete', () => {
    const size = 2 ** 40 + 12_345
    for (const node of [
      ...listInclusionNodes({ index: 2 ** 39, size }),
      ...listConsistencyNodes({ oldSize: 2 ** 33 + 3, size }),
    ]) {
      expect((node.index + 1) * 2 ** node.level).toBeLessThanOrEqual(size)
      expect(Number.isInteger(node.index)).toBe(true)
    }
  })
})

describe('the frontier', () => {
  test('leaf by leaf or in one step, it has the tree’s root, and one hash per bit set in its size', () => {
    let frontier = emptyFrontier
    const list = leaves(300)
    expect(computeFrontierRoot(frontier)).toEqual(Uint8Array.from(emptyRoot))
    for (const [index, leaf] of list.entries()) {
      frontier = appendLeaves(frontier, [leaf])
      assertFrontier(frontier)
      expect(toHex(computeFrontierRoot(frontier))).toBe(toHex(hashTree(list.slice(0, index + 1))))
    }
    expect(appendLeaves(emptyFrontier, list)).toEqual(frontier)
    expect(appendLeaves(appendLeaves(emptyFrontier, list.slice(0, 77)), list.slice(77))).toEqual(frontier)
    expect(emptyFrontier).toEqual({ size: 0, hashes: [] })
  })

  const frontier = appendLeaves(emptyFrontier, leaves(5))
  test.each<[string, unknown]>([
    ['a hash too few', { ...frontier, hashes: frontier.hashes.slice(1) }],
    ['a hash too many', { ...frontier, hashes: [...frontier.hashes, frontier.hashes[0]] }],
    ['another size', { ...frontier, size: 7 }],
    ['no size', { hashes: [] }],
    ['a size with a sign', { size: -1, hashes: [] }],
    ['a size of 2^53', { size: 2 ** 53, hashes: [frontier.hashes[0]] }],
    ['a hash of 31 bytes', { size: 1, hashes: [new Uint8Array(31)] }],
    ['a hash in hex', { size: 1, hashes: ['00'.repeat(32)] }],
    ['a member more', { ...frontier, root: 1 }],
    ['null', null],
  ])('refused: %s', (_, value) => {
    expect(() => assertFrontier(value)).toThrow(withCode('frontier_malformed'))
  })

  test('rejects a leaf of another length', () => {
    expect(() => appendLeaves(frontier, [new Uint8Array(33)])).toThrow(withCode('frontier_malformed'))
  })
})
