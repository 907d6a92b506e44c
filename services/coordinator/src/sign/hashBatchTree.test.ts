import { randomBytes } from 'node:crypto'
import { createInclusionPaths, hashTree, toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { hashBatchTree } from './hashBatchTree.ts'

test.each([...Array.from({ length: 33 }, (_, index) => index + 1), 64, 255, 256])(
  'the tree of %i leaves is that of the protocol',
  (size) => {
    const leaves = Array.from({ length: size }, () => randomBytes(32))
    const { root, paths } = hashBatchTree(leaves.map(toHex))
    expect(root).toBe(toHex(hashTree(leaves)))
    expect(paths).toEqual(createInclusionPaths(leaves).map((path) => path.map(toHex)))
  },
)

test.each<[string, string[]]>([
  ['no leaves', []],
  ['a leaf that is no hex', ['11'.repeat(32), 'xx'.repeat(32)]],
  ['a leaf in upper case', ['AA'.repeat(32)]],
  ['a leaf that is too short', ['11'.repeat(32), '11'.repeat(31)]],
  ['a leaf that is too long', ['11'.repeat(33), '11'.repeat(32)]],
])('%s: attestation_invalid', (_, leaves) => {
  expect(() => hashBatchTree(leaves)).toThrow(expect.objectContaining({ code: 'attestation_invalid' }))
})
