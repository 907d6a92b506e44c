import { expect, test, vi } from 'vitest'
import { ChainError } from '../chain/chainError.ts'
import type { Chain, UnsignedTransaction } from '../ports.ts'
import { watchFunds } from './watchFunds.ts'

const NOW = 1_800_000_000_000
/** It may cost 1,000,000 wei. */
const transaction: UnsignedTransaction = {
  ...{ nonce: 0, to: '0x', data: '0x', gas: 100n, maxFeePerGas: 10_000n, maxPriorityFeePerGas: 1n },
}

function createScene(changes: Partial<Chain>) {
  const told: object[] = []
  let now = NOW
  const chain = watchFunds(
    {
      account: '0xaa',
      chainId: 7,
      contract: '0xcc',
      sign: async () => ({ raw: '0x', hash: '0x' }),
      send: async () => {},
      getBalance: async () => 20_000_000n,
      ...changes,
    } as Chain,
    { clock: { now: () => now }, warnOf: async (type, data) => void told.push({ type, data }) },
  )
  return { chain, told, pass: (ms: number) => (now += ms) }
}
const warning = (balanceWei: string | null) => ({
  type: 'publisher.short_of_gas',
  data: { account: '0xaa', chainId: 7, balanceWei },
})

test('an account that pays for twenty more is enough; one wei less is not, and is looked at once a minute', async () => {
  const getBalance = vi.fn(async () => 20_000_000n)
  const { chain, told, pass } = createScene({ getBalance })
  await chain.sign(transaction)
  await chain.send('0x')
  await vi.waitFor(() => expect(getBalance).toHaveBeenCalledTimes(1))
  expect(told).toEqual([])
  getBalance.mockResolvedValue(19_999_999n)
  pass(59_999)
  await chain.send('0x')
  expect(getBalance).toHaveBeenCalledTimes(1)
  pass(1)
  await chain.send('0x')
  await vi.waitFor(() => expect(told).toEqual([warning('19999999')]))
})

test('an account that cannot pay is told of, and the call fails as before', async () => {
  const refuse = () => Promise.reject(new ChainError('insufficient_funds'))
  const { chain, told } = createScene({ send: refuse, estimateGas: refuse })
  await expect(chain.estimateGas({ to: '0x', data: '0x' })).rejects.toThrow(ChainError)
  await expect(chain.send('0x')).rejects.toThrow(ChainError)
  expect(told).toEqual([warning(null), warning(null)])
})

test('other failures are not told of, and a balance that cannot be had fails nothing', async () => {
  const { chain, told } = createScene({
    estimateGas: () => Promise.reject(new ChainError('chain_unavailable')),
    getBalance: () => Promise.reject(new ChainError('chain_unavailable')),
  })
  await expect(chain.estimateGas({ to: '0x', data: '0x' })).rejects.toThrow(ChainError)
  await chain.send('0x')
  expect(told).toEqual([])
})
