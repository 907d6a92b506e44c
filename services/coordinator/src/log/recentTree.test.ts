import {
  appendLeaves,
  assertConsistency,
  computeTreeRoot,
  createLeafReader,
  emptyFrontier,
  listConsistencyNodes,
  type TreeNode,
} from '@countersign/log'
import { hashTree, toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { leaves } from '../../../../packages/log/test/logs.ts'
import { createFakeLogStore } from '../../test/log/logStore.ts'
import { createRecentTree, proveConsistency, readRoot } from './recentTree.ts'

const all = leaves(600)
const hex = all.map(toHex)
const reader = createLeafReader(all)

test('grows from any frontier, with the root and nodes of the whole tree', () => {
  for (const start of [0, 1, 2, 3, 7, 8, 100, 255, 256, 257]) {
    const tree = createRecentTree(appendLeaves(emptyFrontier, all.slice(0, start)))
    tree.append(hex.slice(start, start + 5))
    tree.append(hex.slice(start + 5, 300))
    expect([tree.size, tree.computeRoot()]).toEqual([300, hashTree(all.slice(0, 300))])
    for (const node of listConsistencyNodes({ oldSize: Math.max(start, 1), size: 300 })) {
      expect(tree.find(node)).toEqual(reader(node))
    }
  }
})

test('does not return incomplete or old nodes', () => {
  const tree = createRecentTree(appendLeaves(emptyFrontier, all.slice(0, 4)))
  tree.append(hex.slice(4, 6))
  expect(tree.find({ level: 2, index: 1 })).toBeUndefined()
  expect(tree.find({ level: 0, index: 1 })).toBeUndefined()
  expect(tree.find({ level: 2, index: 0 })).toEqual(reader({ level: 2, index: 0 }))
})

test('keeps recent nodes and drops older ones', () => {
  const tree = createRecentTree(emptyFrontier)
  const leaf = hex[0] as string
  let most = 0
  for (let round = 0; round < 100; round++) tree.append(Array.from({ length: 512 }, () => leaf))
  for (let index = 0; index < tree.size; index++) if (tree.find({ level: 0, index }) !== undefined) most += 1
  expect(most).toBeLessThan(16_384)
  for (const oldSize of [tree.size - 1, tree.size - 1_000, tree.size - 4_000]) {
    const nodes = listConsistencyNodes({ oldSize, size: tree.size })
    expect(nodes.every((node: TreeNode) => tree.find(node) !== undefined)).toBe(true)
  }
})

test('proves consistency between any sizes, from the cache, from tiles, and from both', async () => {
  const store = createFakeLogStore()
  const entries = Array.from({ length: 600 }, (_, index) => new TextEncoder().encode(`${index}`))
  const checkpoint = { size: 600, root: hashTree(all), note: '' }
  const context = { origin: 'o', key: 'k', bootId: 'b', claims: [], states: [], claimMs: 0, now: 0 }
  await store.appendLog({ ...context, from: 0, entries, checkpoint })
  const [hash = ''] = store.logs.keys()
  const recent = createRecentTree(appendLeaves(emptyFrontier, all.slice(0, 300)))
  recent.append(hex.slice(300))
  const source = { store, hash, recent }
  for (const oldSize of [0, 1, 2, 255, 256, 257, 299, 300, 301, 511, 512, 513, 599, 600]) {
    const proof = await proveConsistency(source, { oldSize, size: 600 })
    const oldRoot = computeTreeRoot(reader, oldSize)
    assertConsistency({ oldSize, oldRoot, size: 600, root: hashTree(all), proof })
    expect(await proveConsistency({ ...source, recent: undefined }, { oldSize, size: 600 })).toEqual(proof)
    expect(await readRoot(source, oldSize)).toEqual(oldRoot)
  }
  const read = store.calls.readTiles
  await proveConsistency(source, { oldSize: 301, size: 600 })
  expect(store.calls.readTiles).toBe(read)
})
