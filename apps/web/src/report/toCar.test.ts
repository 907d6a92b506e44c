import { MAX_BLOCK_BYTES } from '@countersign/protocol'
import { encodeReceiptCar } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { issueGoldenV2 } from '../../../../packages/verify/test/issues.ts'
import { toCar } from './EvidenceDownloads.tsx'

const { bytes, blocks, collateral } = await issueGoldenV2()
const toFound = (found: Uint8Array) => ({
  bytes,
  blocks,
  collateral: { bytes: Uint8Array.from(found), name: undefined },
})

test('packs a receipt’s blocks into one file', () => {
  expect(toCar(toFound(collateral))).toEqual(encodeReceiptCar({ bytes, blocks, collateral }))
})

test.each([
  ['that is another block too', blocks.batch],
  ['that is too large', new Uint8Array(MAX_BLOCK_BYTES + 1)],
])('returns no file for collateral %s, and doesn’t throw', (_, wrong) => {
  expect(toCar(toFound(wrong))).toBeUndefined()
})
