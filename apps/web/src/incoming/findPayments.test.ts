import { describe, expect, test } from 'vitest'
import { createFakeChain, type FakeChain, httpFailure, me, refusal, token } from '../../test/incoming/chain.ts'
import { findPayments } from './findPayments.ts'
import { type IncomingState, NOTHING_SEARCHED } from './payment.ts'

const { signal } = new AbortController()
const look = (chain: FakeChain, known: IncomingState = NOTHING_SEARCHED, tokens = [token]) =>
  findPayments(chain, { address: me, tokens, known, signal })
const amountsOf = ({ payments }: IncomingState) => payments.map(({ amount }) => amount).toSorted()
const pay = (number: bigint, value: bigint) => ({ number, transactions: [{ value }] })

describe('the first search', () => {
  test('covers ten thousand blocks and returns their start time', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(9_999n, 1n), pay(10_001n, 2n), pay(20_000n, 3n)] })
    const state = await look(chain)
    expect(amountsOf(state)).toEqual([2n, 3n])
    const looked = { fromBlock: 10_000n, toBlock: 19_988n, since: '2023-11-16T07:33:20.000Z' }
    expect([state.ether, state.tokens]).toEqual([looked, looked])
  })

  test('covers a short chain from its first block', async () => {
    const state = await look(createFakeChain({ head: 3n, blocks: [pay(1n, 1n)] }))
    expect(state).toMatchObject({ payments: [{ amount: 1n }], ether: { fromBlock: 0n, toBlock: 0n } })
  })

  test('covers a hundred blocks if the node rejects more', async () => {
    const blocks = [pay(15_000n, 1n), { ...pay(19_950n, 2n), transfers: [{ value: 3n }] }]
    const chain = createFakeChain({ head: 20_000n, blocks, keptBlocks: 128n, logBlocks: 500n })
    const state = await look(chain)
    expect(amountsOf(state)).toEqual([2n, 3n])
    expect(state).toMatchObject({ ether: { fromBlock: 19_900n }, tokens: { fromBlock: 19_900n } })
  })

  test('skips token queries without tokens', async () => {
    const chain = createFakeChain({ head: 50n, blocks: [] })
    expect((await look(chain, NOTHING_SEARCHED, [])).tokens).toBeNull()
    expect(chain.asked).not.toContain('eth_getLogs')
  })
})

describe('the next search', () => {
  test('continues after the last block and keeps earlier payments', async () => {
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

  test('drops the payments of a replaced block', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(19_980n, 1n), pay(19_999n, 2n)] })
    const first = await look(chain)
    chain.blocks.pop()
    chain.blocks.push(pay(20_000n, 2n))
    const second = await look(chain, first)
    expect(second.payments.map(({ blockNumber }) => blockNumber)).toEqual([19_980n, 20_000n])
  })

  test('reports a gap after a long pause if the node keeps few blocks', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [pay(19_950n, 1n)], keptBlocks: 128n })
    const first = await look(chain)
    chain.head = 30_000n
    chain.blocks.push(pay(25_000n, 2n), pay(29_950n, 3n))
    const second = await look(chain, first)
    expect(amountsOf(second)).toEqual([1n, 3n])
    expect(second.ether).toMatchObject({ fromBlock: 29_900n })
  })

  test('drops everything if the chain was reset', async () => {
    const first = await look(createFakeChain({ head: 20_000n, blocks: [pay(19_950n, 1n)] }))
    const second = await look(createFakeChain({ head: 5n, blocks: [pay(2n, 2n)] }), first)
    expect(amountsOf(second)).toEqual([2n])
    expect(second.ether).toMatchObject({ fromBlock: 0n })
  })
})

describe('a node that', () => {
  test('rejects the queries gets two of each kind, and the result is refused', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [], keptBlocks: -1n, logBlocks: 0n })
    expect(await look(chain)).toEqual({ payments: [], ether: 'refused', tokens: 'refused' })
    expect(chain.asked.filter((method) => method === 'eth_getLogs')).toHaveLength(2)
    expect(chain.asked.length).toBeLessThan(10)
  })

  test('has rejected the queries is not queried again', async () => {
    const chain = createFakeChain({ head: 20_000n, blocks: [] })
    const refused = { payments: [], ether: 'refused', tokens: 'refused' } as const
    expect(await look(chain, refused)).toEqual(refused)
    expect(chain.asked).toEqual(['eth_blockNumber'])
  })

  test.each([
    ['being offline', httpFailure(), 'unreachable'],
    ['limiting the rate', httpFailure(429), 'unreachable'],
    ['failing', httpFailure(503), 'unreachable'],
    ['forbidding the query', httpFailure(403), 'refused'],
    ['not supporting the method', refusal('no such method'), 'refused'],
    ['returning an invalid response', new TypeError('x'), 'refused'],
  ])('%s keeps earlier results', async (_, failure, fault) => {
    const chain = createFakeChain({ head: 100n, blocks: [pay(50n, 1n)] })
    const first = await look(chain)
    chain.getBalance = () => Promise.reject(failure)
    const second = await look(chain, first)
    expect(second).toMatchObject({ payments: [{ amount: 1n }], ether: fault, tokens: { fromBlock: 0n } })
    chain.getBlockNumber = () => Promise.reject(failure)
    expect(await look(chain, first)).toEqual({ payments: first.payments, ether: fault, tokens: fault })
  })
})

test('rejects when aborted', async () => {
  const chain = createFakeChain({ head: 100n, blocks: [] })
  const parameters = { address: me, tokens: [], known: NOTHING_SEARCHED, signal: AbortSignal.abort() }
  await expect(findPayments(chain, parameters)).rejects.toThrow(/abort/)
})
