import { expect, test } from 'vitest'
import { createFakeChain, type FakeBlock, friend, me, token } from '../../test/incoming/chain.ts'
import { scanTransfers } from './scanTransfers.ts'

const { signal } = new AbortController()

async function scan(blocks: FakeBlock[]) {
  const chain = createFakeChain({ head: 1000n, blocks })
  const found = await scanTransfers(chain, { address: me, tokens: [token], fromBlock: 5n, toBlock: 1000n, signal })
  return { ...found, asked: chain.asked }
}

test('finds payments of listed tokens, newest first, and queries each block’s time once', async () => {
  const { payments, fromBlock, asked } = await scan([
    { number: 6n, transfers: [{ value: 1n }, { value: 2n }] },
    { number: 1000n, transfers: [{ value: 3n }] },
  ])
  expect(payments.map(({ amount }) => amount)).toEqual([3n, 1n, 2n])
  expect(payments[0]).toMatchObject({ from: friend, token, blockNumber: 1000n, time: '2023-11-15T01:33:20.000Z' })
  expect(fromBlock).toBe(5n)
  expect(asked).toEqual(['eth_getLogs', 'eth_getBlockByNumber', 'eth_getBlockByNumber'])
})

test.each<[string, FakeBlock]>([
  ['a block before the range', { number: 5n, transfers: [{ value: 1n }] }],
  ['another contract', { number: 9n, transfers: [{ value: 1n, address: friend }] }],
  ['a payment of nothing, as imitators of addresses send', { number: 9n, transfers: [{ value: 0n }] }],
  ['a payment to oneself', { number: 9n, transfers: [{ value: 1n, from: me }] }],
  ['a payment to somebody else', { number: 9n, transfers: [{ value: 1n, to: friend }] }],
])('ignores %s', async (_, block) => {
  expect((await scan([block])).payments).toEqual([])
})

test('returns only the newest payments, in whole blocks, and a shorter range', async () => {
  const blocks = Array.from({ length: 30 }, (_, index) => ({
    number: BigInt(100 + index),
    transfers: [{ value: 1n }, { value: 2n }],
  }))
  const { payments, fromBlock, asked } = await scan(blocks)
  expect(payments).toHaveLength(20)
  expect(fromBlock).toBe(119n)
  expect(payments.every(({ blockNumber }) => blockNumber > fromBlock)).toBe(true)
  expect(asked).toHaveLength(11)
})
