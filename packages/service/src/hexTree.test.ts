import { createHash } from 'node:crypto'
import { hashTree, hashTreeLeaf, hashTreeNode, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createTreeEdge, hashLeaf, hashNode } from './hexTree.ts'

const leaves = Array.from({ length: 300 }, (_, index) => hashTreeLeaf(Uint8Array.of(index >> 8, index & 0xff)))
const hex = leaves.map(toHex)

describe('hashes of trees in hex', () => {
  test('equal the protocol’s', () => {
    for (const entry of [new Uint8Array(), new Uint8Array(57).fill(0xab), new Uint8Array(300)]) {
      expect(hashLeaf(toHex(entry))).toBe(toHex(hashTreeLeaf(entry)))
    }
    const [left, right] = leaves as [Uint8Array, Uint8Array]
    expect(hashNode(toHex(left), toHex(right))).toBe(toHex(hashTreeNode(left, right)))
  })

  test.each([
    ['', '00'.repeat(32)],
    ['00'.repeat(31), '00'.repeat(33)],
    ['11'.repeat(33), '22'.repeat(31)],
    ['00'.repeat(32), `zz${'00'.repeat(31)}`],
    ['00'.repeat(32), '00'.repeat(33)],
  ])('rejects a node of values that are not hashes: %s, %s', (left, right) => {
    expect(() => hashNode(left, right)).toThrow('a hash is not hex of 32 bytes')
  })

  test.each(['zz', '0', '00 0', '000'])('rejects an entry that is not hex: %s', (entry) => {
    expect(() => hashLeaf(entry)).toThrow('an entry is not hex')
  })

  test('rejects a start with hashes of another size, and growth beyond the maximum', () => {
    expect(() => createTreeEdge({ size: 1, hashes: [] })).toThrow('another number of hashes')
    expect(() => createTreeEdge({ size: 2, hashes: hex.slice(0, 2) })).toThrow('another number of hashes')
    const full = createTreeEdge({ size: Number.MAX_SAFE_INTEGER, hashes: hex.slice(0, 53) })
    expect(() => full.append(hex[0] as string)).toThrow('the tree is full')
  })

  test('a tree that grows from any size has the root and the nodes of the whole', () => {
    for (let start = 0; start <= 40; start++) {
      const before = createTreeEdge({ size: 0, hashes: [] })
      for (const leaf of hex.slice(0, start)) before.append(leaf)
      const told: string[] = []
      const edge = createTreeEdge(before, (level, index, hash) => {
        expect(hash).toBe(toHex(hashTree(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))))
        told.push(`${level}/${index}`)
      })
      for (const leaf of hex.slice(start)) edge.append(leaf)
      expect([edge.size, edge.computeRoot()]).toEqual([300, toHex(hashTree(leaves))])
      // The tree of 300 leaves has 300 + 150 + 75 + 37 + 18 + 9 + 4 + 2 + 1 complete nodes.
      const known = [1, 2, 4, 8, 16, 32].reduce((sum, width) => sum + Math.floor(start / width), 0)
      expect(new Set(told).size).toBe(596 - known)
    }
  })

  test('does not change the tree that it continues', () => {
    const before = createTreeEdge({ size: 0, hashes: [] })
    before.append(hex[0] as string)
    createTreeEdge(before).append(hex[1] as string)
    expect([before.size, before.computeRoot()]).toEqual([1, hex[0]])
  })

  test('the root of no leaves is that of RFC 6962, and other leaves are rejected', () => {
    const edge = createTreeEdge({ size: 0, hashes: [] })
    expect(edge.computeRoot()).toBe(createHash('sha256').digest('hex'))
    expect(() => edge.append('00')).toThrow('a leaf is not hex of 32 bytes')
    expect(edge.size).toBe(0)
  })
})
