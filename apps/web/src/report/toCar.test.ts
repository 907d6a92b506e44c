import { MAX_BLOCK_BYTES } from '@countersign/protocol'
import { encodeReceiptCar } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { issueGoldenV2 } from '../../../../packages/verify/test/issues.ts'
import { toCar } from './KeepEvidence.tsx'

const { bytes, blocks, collateral } = await issueGoldenV2()
const toFound = (found: Uint8Array) => ({
  bytes,
  blocks,
  collateral: { bytes: Uint8Array.from(found), name: undefined },
})

test('the blocks of a receipt are one file', () => {
  expect(toCar(toFound(collateral))).toEqual(encodeReceiptCar({ bytes, blocks, collateral }))
})

test.each([
  ['that is another block too', blocks.batch],
  ['that is too large', new Uint8Array(MAX_BLOCK_BYTES + 1)],
])('collateral %s leaves no file, and does not take the page with it', (_, wrong) => {
  expect(toCar(toFound(wrong))).toBeUndefined()
})
