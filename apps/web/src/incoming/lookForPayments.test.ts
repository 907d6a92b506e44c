import { describe, expect, test } from 'vitest'
import { createFakeChain, type FakeChain, httpFailure, me, refusal, token } from '../../test/incoming/chain.ts'
import { lookForPayments } from './lookForPayments.ts'
import { type IncomingState, NOTHING_LOOKED_AT } from './payment.ts'

const { signal } = new AbortController()
const look = (chain: FakeChain, known: IncomingState = NOTHING_LOOKED_AT, tokens = [token]) =>
  lookForPayments(chain, { address: me, tokens, known, signal })
const amountsOf = ({ payments }: IncomingState) => payments.map(({ amount }) => amount).toSorted()
const pay = (number: bigint, value: bigint) => ({ number, transactions: [{ value }] })

describe('the first look', () => {
  test('goes back ten thousand blocks, and says from when', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(9_999n, 1n), pay(10_001n, 2n), pay(20_000n, 3n)] })
    const state = await look(chain)
    expect(amountsOf(state)).toEqual([2n, 3n])
    const looked = { fromBlock: 10_000n, toBlock: 19_988n, since: '2023-11-16T07:33:20.000Z' }
    expect([state.ether, state.tokens]).toEqual([looked, looked])
  })

  test('of a young chain: from its first block', async () => {
    const state = await look(createFakeChain({ head: 3n, blocks: [pay(1n, 1n)] }))
    expect(state).toMatchObject({ payments: [{ amount: 1n }], ether: { fromBlock: 0n, toBlock: 0n } })
  })

  test('of a node that keeps little: a hundred blocks', async () => {
    const blocks = [pay(15_000n, 1n), { ...pay(19_950n, 2n), transfers: [{ value: 3n }] }]
    const chain = createFakeChain({ head: 20_000n, blocks, keptBlocks: 128n, logBlocks: 500n })
    const state = await look(chain)
    expect(amountsOf(state)).toEqual([2n, 3n])
    expect(state).toMatchObject({ ether: { fromBlock: 19_900n }, tokens: { fromBlock: 19_900n } })
  })

  test('asks nothing about tokens where there are none', async () => {
    const chain = createFakeChain({ head: 50n, blocks: [] })
    expect((await look(chain, NOTHING_LOOKED_AT, [])).tokens).toBeNull()
    expect(chain.asked).not.toContain('eth_getLogs')
  })
})

describe('the next look', () => {
  test('goes on where the last ended, and keeps what was found', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(15_000n, 1n)] })
    const first = await look(chain)
    chain.head = 20_100n
    chain.blocks.push(pay(20_050n, 2n))
    chain.asked.length = 0
    const second = await look(chain, first)
    expect(amountsOf(second)).toEqual([1n, 2n])
    expect(second.ether).toMatchObject({ fromBlock: 10_000n, toBlock: 20_088n })
    expect(chain.asked.length).toBeLessThan(30)
  })

  test('a block that was replaced takes its payment with it', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(19_980n, 1n), pay(19_999n, 2n)] })
    const first = await look(chain)
    chain.blocks.pop()
    chain.blocks.push(pay(20_000n, 2n))
    const second = await look(chain, first)
    expect(second.payments.map(({ blockNumber }) => blockNumber)).toEqual([19_980n, 20_000n])
  })

  test('after a long pause, of a node that keeps little: there may be a gap, and the range says so', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(19_950n, 1n)], keptBlocks: 128n })
    const first = await look(chain)
    chain.head = 30_000n
    chain.blocks.push(pay(25_000n, 2n), pay(29_950n, 3n))
    const second = await look(chain, first)
    expect(amountsOf(second)).toEqual([1n, 3n])
    expect(second.ether).toMatchObject({ fromBlock: 29_900n })
  })

  test('on a chain that began again, nothing of the old one stays', async () => {
    const first = await look(createFakeChain({ head: 20_000n, blocks: [pay(19_950n, 1n)] }))
    const second = await look(createFakeChain({ head: 5n, blocks: [pay(2n, 2n)] }), first)
    expect(amountsOf(second)).toEqual([2n])
    expect(second.ether).toMatchObject({ fromBlock: 0n })
  })
})

describe('a node that', () => {
  test('refuses such questions: two of each kind are asked, and it is told', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [], keptBlocks: -1n, logBlocks: 0n })
    expect(await look(chain)).toEqual({ payments: [], ether: 'refused', tokens: 'refused' })
    expect(chain.asked.filter((method) => method === 'eth_getLogs')).toHaveLength(2)
    expect(chain.asked.length).toBeLessThan(10)
  })

  test('has refused is not asked again', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [] })
    const refused = { payments: [], ether: 'refused', tokens: 'refused' } as const
    expect(await look(chain, refused)).toEqual(refused)
    expect(chain.asked).toEqual(['eth_blockNumber'])
  })

  test.each([
    ['is away', httpFailure(), 'unreachable'],
    ['has had enough', httpFailure(429), 'unreachable'],
    ['fails', httpFailure(503), 'unreachable'],
    ['forbids it', httpFailure(403), 'refused'],
    ['does not know the method', refusal('no such method'), 'refused'],
    ['answers nonsense', new TypeError('x'), 'refused'],
  ])('%s: what was found stays', async (_, failure, fault) => {
    const chain = createFakeChain({ head: 100n, blocks: [pay(50n, 1n)] })
    const first = await look(chain)
    chain.getBalance = () => Promise.reject(failure)
    const second = await look(chain, first)
    expect(second).toMatchObject({ payments: [{ amount: 1n }], ether: fault, tokens: { fromBlock: 0n } })
    chain.getBlockNumber = () => Promise.reject(failure)
    expect(await look(chain, first)).toEqual({ payments: first.payments, ether: fault, tokens: fault })
  })
})

test('a look that is aborted says nothing', async () => {
  const chain = createFakeChain({ head: 100n, blocks: [] })
  const parameters = { address: me, tokens: [], known: NOTHING_LOOKED_AT, signal: AbortSignal.abort() }
  await expect(lookForPayments(chain, parameters)).rejects.toThrow(/abort/)
})
