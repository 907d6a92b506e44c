import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { expect, test } from 'vitest'
import type { PinWork } from '../../services/coordinator/src/store/findPins.ts'
import { countBlocks } from './pinReceipts.ts'

const service = createReceiptSimulator()
const signedAt = new Date('2026-06-15T12:00:00.000Z')

async function issue(nonce: number, batchSequence: number) {
  const { records, collateral, bytes } = await service.issue({ signedAt, txMetadata: { nonce }, batchSequence })
  const { collateral: _cid, ...batch } = records.batch
  const work: PinWork = {
    slug: `${nonce}`,
    status: 'pending_pin',
    records: { version: 1, ...records, batch, collateral },
    receiptBytes: null,
    attempts: 0,
    createdAt: 0,
  }
  return { work, size: bytes.length, collateralSize: collateral.length }
}

test('blocks are counted for the quote that they belong to, and once where several quotes share them', async () => {
  const issued = [await issue(0, 0), await issue(1, 0), await issue(2, 1)] as const
  const findPin = async (slug: string) => issued.find(({ work }) => work.slug === slug)?.work
  const pinning = { findPin } as Parameters<typeof countBlocks>[0]['pinning']
  const [first, second, third] = issued
  expect(await countBlocks({ pinning }, ['0', '1', '2'])).toEqual({
    batches: [
      { signatures: 2, blocks: 2, bytes: first.size + second.size },
      { signatures: 1, blocks: 1, bytes: third.size },
    ],
    shared: { blocks: 1, bytes: first.collateralSize },
  })
  await expect(countBlocks({ pinning }, ['9'])).rejects.toThrow('not there')
})
