import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { fromHex, toHex } from './hex.ts'
import { computeRoot, createInclusionPath, createInclusionPaths, hashTree, hashTreeLeaf } from './merkle.ts'

const sha256 = (...parts: Uint8Array[]) => Uint8Array.from(hash('sha256', Buffer.concat(parts), 'buffer'))

/** k of RFC 6962 §2.1: the largest power of two below n. */
function split(n: number): number {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}

/** RFC 6962 §2.1 and §2.1.1 word for word, over D[from:to], with a cache of roots. */
function createNaive(leaves: Uint8Array[]) {
  const roots = new Map<string, Uint8Array>()

  function naiveRoot(from = 0, to = leaves.length): Uint8Array {
    const known = roots.get(`${from}:${to}`)
    if (known !== undefined) return known
    const k = from + split(to - from)
    const root =
      to - from === 1 ? (leaves[from] as Uint8Array) : sha256(Uint8Array.of(1), naiveRoot(from, k), naiveRoot(k, to))
    roots.set(`${from}:${to}`, root)
    return root
  }

  function naivePath(index: number, from = 0, to = leaves.length): Uint8Array[] {
    if (to - from === 1) return []
    const k = from + split(to - from)
    if (index < k) return [...naivePath(index, from, k), naiveRoot(k, to)]
    return [...naivePath(index, k, to), naiveRoot(from, k)]
  }

  return { naiveRoot, naivePath }
}

const makeLeaves = (size: number, seed = 0) =>
  Array.from({ length: size }, (_, index) => sha256(Buffer.from(`${seed}/${index}`)))

/** The root as hex, or the error code. */
function tryRoot(inclusion: Parameters<typeof computeRoot>[0]): string {
  try {
    return toHex(computeRoot(inclusion))
  } catch (error) {
    expect(error).toEqual(withCode('inclusion_malformed'))
    return 'malformed'
  }
}

describe('Merkle tree (RFC 6962 §2.1)', () => {
  test('matches the vectors of the certificate-transparency project', () => {
    const entries = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
    const leaves = entries.map((entry) => hashTreeLeaf(fromHex(entry)))
    expect(toHex(hashTree(leaves.slice(0, 1)))).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d')
    expect(toHex(hashTree(leaves.slice(0, 2)))).toBe('fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125')
    expect(toHex(hashTree(leaves.slice(0, 3)))).toBe('aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77')
    expect(toHex(hashTree(leaves.slice(0, 5)))).toBe('4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4')
    expect(toHex(hashTree(leaves))).toBe('5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328')
  })

  test('for every leaf of every size from 1 to 70, root and path match the RFC, and the path leads to the root', () => {
    for (let size = 1; size <= 70; size++) {
      const leaves = makeLeaves(size)
      const { naiveRoot, naivePath } = createNaive(leaves)
      const root = hashTree(leaves)
      expect(toHex(root)).toBe(toHex(naiveRoot()))
      const paths = createInclusionPaths(leaves)
      expect(paths).toHaveLength(size)
      for (const [leafIndex, leaf] of leaves.entries()) {
        const path = createInclusionPath(leaves, leafIndex)
        const hex = path.map(toHex).join()
        expect(hex).toBe(naivePath(leafIndex).map(toHex).join())
        expect(paths[leafIndex]?.map(toHex).join()).toBe(hex)
        expect(toHex(computeRoot({ leaf, leafIndex, treeSize: size, path }))).toBe(toHex(root))
      }
    }
  })

  test('random larger sizes match too', () => {
    const sizeAndIndex = fc
      .integer({ min: 71, max: 3000 })
      .chain((size) => fc.tuple(fc.constant(size), fc.nat(size - 1), fc.nat(1000)))
    fc.assert(
      fc.property(sizeAndIndex, ([treeSize, leafIndex, seed]) => {
        const leaves = makeLeaves(treeSize, seed)
        const { naiveRoot, naivePath } = createNaive(leaves)
        const path = createInclusionPath(leaves, leafIndex)
        expect(toHex(hashTree(leaves))).toBe(toHex(naiveRoot()))
        expect(path.map(toHex)).toEqual(naivePath(leafIndex).map(toHex))
        const leaf = leaves[leafIndex] as Uint8Array
        expect(toHex(computeRoot({ leaf, leafIndex, treeSize, path }))).toBe(toHex(naiveRoot()))
      }),
      { numRuns: 25 },
    )
  })

  test('changing a result does not change the leaves', () => {
    const leaves = makeLeaves(2)
    const [only] = leaves as [Uint8Array]
    hashTree([only]).fill(0)
    computeRoot({ leaf: only, leafIndex: 0, treeSize: 1, path: [] }).fill(0)
    for (const hash of createInclusionPath(leaves, 1)) hash.fill(0)
    expect(leaves.map(toHex)).toEqual(makeLeaves(2).map(toHex))
  })

  test('rejects an empty tree, and leaves of another length', () => {
    expect(() => hashTree([])).toThrow(withCode('inclusion_malformed'))
    expect(() => createInclusionPaths([])).toThrow(withCode('inclusion_malformed'))
    expect(() => createInclusionPath([], 0)).toThrow(withCode('inclusion_malformed'))
    expect(() => hashTree([new Uint8Array(31)])).toThrow(withCode('invalid_length'))
    expect(() => hashTree([new Uint8Array(32), new Uint8Array(33)])).toThrow(withCode('invalid_length'))
  })

  test.each([-1, 5, 0.5, Number.NaN, '0', null])('rejects index %s of 5', (index) => {
    expect(() => createInclusionPath(makeLeaves(5), index as number)).toThrow(withCode('inclusion_malformed'))
  })
})

describe('root from a path (RFC 9162 §2.1.3.2)', () => {
  const sizes = Array.from({ length: 33 }, (_, index) => index + 1)

  test('a wrong index never leads to the root', () => {
    for (const treeSize of sizes) {
      const leaves = makeLeaves(treeSize)
      const root = toHex(hashTree(leaves))
      for (const [index, leaf] of leaves.entries()) {
        const path = createInclusionPath(leaves, index)
        for (const leafIndex of leaves.keys()) {
          const found = tryRoot({ leaf, leafIndex, treeSize, path })
          expect(found === root).toBe(leafIndex === index)
        }
        expect(tryRoot({ leaf, leafIndex: treeSize, treeSize, path })).toBe('malformed')
      }
    }
  })

  test('a path that is too short or too long never leads to the root', () => {
    for (const treeSize of sizes) {
      const leaves = makeLeaves(treeSize)
      for (const [leafIndex, leaf] of leaves.entries()) {
        const path = createInclusionPath(leaves, leafIndex)
        const extra = new Uint8Array(32)
        const wrong = [
          [...path, extra],
          [extra, ...path],
          ...path.map((_, skip) => path.filter((__, at) => at !== skip)),
        ]
        for (const other of wrong) expect(tryRoot({ leaf, leafIndex, treeSize, path: other })).toBe('malformed')
      }
    }
  })

  test('a changed bit in the leaf or in the path never leads to the root', () => {
    const parameters = fc
      .integer({ min: 2, max: 300 })
      .chain((size) => fc.tuple(fc.constant(size), fc.nat(size - 1), fc.nat(), fc.nat(255)))
    fc.assert(
      fc.property(parameters, ([treeSize, leafIndex, pick, bit]) => {
        const leaves = makeLeaves(treeSize)
        const hashes = [leaves[leafIndex] as Uint8Array, ...createInclusionPath(leaves, leafIndex)].map((hash) =>
          Uint8Array.from(hash),
        )
        const changed = hashes[pick % hashes.length] as Uint8Array
        changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
        const [leaf, ...path] = hashes as [Uint8Array, ...Uint8Array[]]
        expect(toHex(computeRoot({ leaf, leafIndex, treeSize, path }))).not.toBe(toHex(hashTree(leaves)))
      }),
    )
  })

  test('swapped neighbors in a path do not lead to the root', () => {
    const leaves = makeLeaves(8)
    const [a, b, c] = createInclusionPath(leaves, 3) as [Uint8Array, Uint8Array, Uint8Array]
    const found = computeRoot({ leaf: leaves[3] as Uint8Array, leafIndex: 3, treeSize: 8, path: [b, a, c] })
    expect(toHex(found)).not.toBe(toHex(hashTree(leaves)))
  })

  test('a wrong size leads to another root, unless the leaf has the same turns in both trees', () => {
    // Left or right at each step up, which depends on the index and the size.
    const turns = (index: number, size: number): string => {
      if (size === 1) return ''
      const k = split(size)
      return index < k ? `${turns(index, k)}L` : `${turns(index - k, size - k)}R`
    }
    for (const size of sizes) {
      const leaves = makeLeaves(size)
      const root = toHex(hashTree(leaves))
      for (const [leafIndex, leaf] of leaves.entries()) {
        const path = createInclusionPath(leaves, leafIndex)
        for (const treeSize of [...sizes, 64, 0xffff_ffff]) {
          const isSame = leafIndex < treeSize && turns(leafIndex, size) === turns(leafIndex, treeSize)
          expect(tryRoot({ leaf, leafIndex, treeSize, path }) === root).toBe(isSame)
        }
      }
    }
    expect(turns(0, 3)).toBe(turns(0, 4))
  })

  test('works at the largest size', () => {
    const leaf = new Uint8Array(32)
    const treeSize = 0xffff_ffff
    const path = (length: number) => Array.from({ length }, () => new Uint8Array(32))
    for (const leafIndex of [0, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 3]) {
      expect(tryRoot({ leaf, leafIndex, treeSize, path: path(32) })).not.toBe('malformed')
      expect(tryRoot({ leaf, leafIndex, treeSize, path: path(31) })).toBe('malformed')
      expect(tryRoot({ leaf, leafIndex, treeSize, path: path(33) })).toBe('malformed')
    }
    // The last leaf moved up without a sibling once.
    expect(tryRoot({ leaf, leafIndex: 2 ** 32 - 2, treeSize, path: path(31) })).not.toBe('malformed')
    expect(tryRoot({ leaf, leafIndex: 2 ** 32 - 2, treeSize, path: path(32) })).toBe('malformed')
  })

  const leaf = new Uint8Array(32)
  test.each([
    ['size 0', { leaf, leafIndex: 0, treeSize: 0, path: [] }],
    ['size 2^32', { leaf, leafIndex: 0, treeSize: 2 ** 32, path: Array.from({ length: 32 }, () => leaf) }],
    ['size 1.5', { leaf, leafIndex: 0, treeSize: 1.5, path: [leaf] }],
    ['size as text', { leaf, leafIndex: 0, treeSize: '1', path: [] }],
    ['index -1', { leaf, leafIndex: -1, treeSize: 1, path: [] }],
    ['index -0', { leaf, leafIndex: -0, treeSize: 1, path: [] }],
    ['index 0.5', { leaf, leafIndex: 0.5, treeSize: 2, path: [leaf] }],
    ['index NaN', { leaf, leafIndex: Number.NaN, treeSize: 2, path: [leaf] }],
    ['a leaf of 31 bytes', { leaf: leaf.subarray(1), leafIndex: 0, treeSize: 1, path: [] }],
    ['a leaf as hex', { leaf: '00'.repeat(32), leafIndex: 0, treeSize: 1, path: [] }],
    ['a hash of 33 bytes', { leaf, leafIndex: 0, treeSize: 2, path: [new Uint8Array(33)] }],
    ['no path', { leaf, leafIndex: 0, treeSize: 1, path: undefined }],
  ])('refuses %s', (_, inclusion) => {
    expect(() => computeRoot(inclusion as Parameters<typeof computeRoot>[0])).toThrow(withCode('inclusion_malformed'))
  })
})
