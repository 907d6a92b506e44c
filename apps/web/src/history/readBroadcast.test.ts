import { expect, test } from 'vitest'
import { readBroadcast, type SignedTransaction } from './useBroadcasts.ts'

const createdAt = '2026-01-01T00:00:00.000Z'
const later = Date.parse(createdAt) + 3_600_000
const transaction: SignedTransaction = {
  txHash: '0x01',
  chainId: 1,
  slug: 's',
  status: 'complete',
  createdAt,
  to: '0x02',
  value: '0',
  data: '0x',
  nonce: 7,
}

/** A node that returns these receipts in order, then repeats the last. */
function createNode({ receipts = [null], pending = null, count = 7 }: NodeParameters) {
  let asked = 0
  return {
    async request({ method }: { method: string }) {
      if (method === 'eth_getTransactionByHash') return pending
      return receipts[Math.min(asked++, receipts.length - 1)]
    },
    async getTransactionCount() {
      return count
    },
  } as unknown as Parameters<typeof readBroadcast>[0]
}
type NodeParameters = { receipts?: ({ status: string } | null)[]; pending?: object | null; count?: number }

test.each<[string, NodeParameters, number]>([
  ['included', { receipts: [{ status: '0x1' }] }, later],
  ['reverted', { receipts: [{ status: '0x0' }] }, later],
  ['waiting', { pending: {} }, later],
  ['not_broadcast', {}, later],
  // Another node may know it.
  ['waiting', {}, Date.parse(createdAt) + 1000],
  ['unknown', { count: 8 }, later],
  // The block arrived between the two queries.
  ['included', { receipts: [null, { status: '0x1' }], count: 8 }, later],
])('%s', async (expected, node, now) => {
  const from = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
  expect(await readBroadcast(createNode(node), { from, transaction, now })).toBe(expected)
})
