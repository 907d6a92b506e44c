import { assertConsistency } from '@countersign/log'
import { keccak256, toHex } from 'viem'
import { expect, test } from 'vitest'
import { createSyntheticProof } from './createSyntheticProof.ts'

function createHashes() {
  let drawn = 0
  return () => keccak256(toHex(++drawn), 'bytes')
}

test.each([
  [1, 2],
  [6, 8],
  [2 ** 30 - 140, 2 ** 30],
  [2 ** 40 - 1, 2 ** 40],
  [2 ** 52, 2 ** 53 - 1],
])('packages/log accepts a synthetic proof from %d to %d', (oldSize, size) => {
  const { older, newer, proof } = createSyntheticProof(createHashes(), { oldSize, size })
  assertConsistency({ oldSize, oldRoot: older, size, root: newer, proof })
  if (size === 2 ** 40) expect(proof).toHaveLength(41)
})
