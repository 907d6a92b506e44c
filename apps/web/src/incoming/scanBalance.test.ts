import { describe, expect, test } from 'vitest'
import { createFakeChain, type FakeBlock, friend, me } from '../../test/incoming/chain.ts'
import { scanBalance } from './scanBalance.ts'

const { signal } = new AbortController()

async function scan(blocks: FakeBlock[], { fromBlock = 0n, toBlock = 10_000n } = {}) {
  const chain = createFakeChain({ head: toBlock, blocks })
  const found = await scanBalance(chain, { address: me, fromBlock, toBlock, signal })
  return { ...found, asked: chain.asked }
}

describe('scanBalance', () => {
  test('needs four queries and no block for an idle account', async () => {
    const { payments, fromBlock, asked } = await scan([{ number: 20_000n, transactions: [{ value: 1n }] }])
    expect([payments, fromBlock]).toEqual([[], 0n])
    expect(asked).toHaveLength(4)
    expect(asked).not.toContain('eth_getBlockByNumber')
  })

  test('finds each payment, newest first, and reads only the blocks with payments', async () => {
    const { payments, fromBlock, asked } = await scan([
      { number: 1n, transactions: [{ value: 5n }, { value: 6n }] },
      { number: 10_000n, transactions: [{ value: 7n, from: `0x${'cd'.repeat(20)}` }] },
    ])
    expect(payments.map(({ blockNumber, amount }) => [blockNumber, amount])).toEqual([
      [10_000n, 7n],
      [1n, 5n],
      [1n, 6n],
    ])
    expect(payments[1]).toMatchObject({ from: friend, token: null, time: '2023-11-14T22:13:32.000Z' })
    expect(new Set(payments.map(({ key }) => key)).size).toBe(3)
    expect(fromBlock).toBe(0n)
    expect(asked.filter((method) => method === 'eth_getBlockByNumber')).toHaveLength(2)
    expect(asked.length).toBeLessThan(70)
  })

  test('finds a payment that was spent again, although the balance is unchanged', async () => {
    const { payments } = await scan([
      { number: 40n, transactions: [{ value: 50_000n }] },
      { number: 60n, transactions: [{ from: me, to: friend, value: 29_000n }] },
    ])
    expect(payments).toMatchObject([{ blockNumber: 40n, amount: 50_000n }])
  })

  test('returns no sender if a contract paid', async () => {
    const { payments } = await scan([{ number: 9n, inner: 3n, transactions: [{ value: 2n }] }])
    expect(payments).toMatchObject([
      { amount: 2n, from: friend },
      { amount: 3n, from: null, txHash: null },
    ])
  })

  test.each<[string, FakeBlock]>([
    ['a payment that failed', { number: 9n, transactions: [{ value: 5n, hasFailed: true }], inner: -1n }],
    ['a payment to itself', { number: 9n, transactions: [{ from: me, to: me, value: 5n }] }],
    ['an outgoing payment', { number: 9n, transactions: [{ from: me, to: friend, value: 5n }] }],
    [
      'what came back from an own call',
      { number: 9n, transactions: [{ from: me, to: friend, value: 0n }], inner: 99_000n },
    ],
    ['an empty payment', { number: 9n, transactions: [{ value: 0n }], inner: -1n }],
    ['a payment to another address', { number: 9n, transactions: [{ to: friend, value: 5n }], inner: -1n }],
  ])('ignores %s', async (_, block) => {
    expect((await scan([block])).payments).toEqual([])
  })

  test('limits the queries for a busy account and leaves no gap in the searched range', async () => {
    const blocks = Array.from({ length: 200 }, (_, index) => ({
      number: BigInt(index * 50 + 1),
      transactions: [{ value: BigInt(index + 1) }],
    }))
    const { payments, fromBlock, asked } = await scan(blocks)
    expect(asked.length).toBeLessThan(200)
    expect(payments.length).toBeGreaterThan(5)
    const covered = blocks.filter(({ number }) => number > fromBlock).map(({ number }) => number)
    expect(payments.map(({ blockNumber }) => blockNumber)).toEqual(covered.toReversed())
  })

  test('sends no queries for an empty range', async () => {
    expect(await scan([], { fromBlock: 7n, toBlock: 7n })).toEqual({ payments: [], fromBlock: 7n, asked: [] })
  })

  test('stops when aborted', async () => {
    const chain = createFakeChain({ head: 100n, blocks: [{ number: 50n, transactions: [{ value: 1n }] }] })
    const controller = new AbortController()
    const { getBalance } = chain
    chain.getBalance = (parameters) => {
      if (chain.asked.length > 3) controller.abort()
      return getBalance(parameters)
    }
    const scanning = scanBalance(chain, { address: me, fromBlock: 0n, toBlock: 100n, signal: controller.signal })
    await expect(scanning).rejects.toThrow(/abort/)
    expect(chain.asked.length).toBeLessThan(9)
  })
})
