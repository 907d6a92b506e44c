import { expect, test } from 'vitest'
import { ChainError } from '../chain/chainError.ts'
import { createFakeLog } from '../ports.fake.ts'
import { watchBalance } from './watchBalance.ts'

function start({ isDown = false } = {}) {
  const state = { isDown, wei: 30_000_000n, fee: 3n }
  const seen: string[] = []
  const tasks: (() => void)[] = []
  const log = createFakeLog()
  const fail = () => Promise.reject(new ChainError('chain_unavailable'))
  const stop = watchBalance({
    chain: {
      account: '0x01',
      getBalance: async () => (state.isDown ? fail() : state.wei),
      getFees: async () => ({ maxFeePerGas: state.fee, maxPriorityFeePerGas: 1n }),
    },
    schedule(task) {
      tasks.push(task)
      return () => void tasks.splice(tasks.indexOf(task), 1)
    },
    log,
    metrics: { observeBalance: (account, { wei, gas }) => seen.push(`${account} ${wei} ${gas}`) },
  })
  /** Resolves when the reading under way is over. */
  const settle = () => expect.poll(() => tasks.length).toBe(1)
  const again = async () => {
    tasks.shift()?.()
    await settle()
  }
  return { state, seen, tasks, log, stop, settle, again }
}

test('what the publisher has, and the gas that it pays for at what would be bid', async () => {
  const { seen, settle, again, state } = start()
  await settle()
  state.wei = 6n
  await again()
  expect(seen).toEqual(['0x01 30000000 10000000', '0x01 6 2'])
})

test('a chain without fees divides by nothing', async () => {
  const { seen, settle, again, state } = start()
  await settle()
  state.fee = 0n
  await again()
  expect(seen.at(-1)).toBe('0x01 30000000 30000000')
})

test('a chain that is gone is said once, and asked again', async () => {
  const { seen, settle, again, state, log } = start({ isDown: true })
  await settle()
  await again()
  expect(seen).toEqual([])
  expect(log.lines).toMatchObject([
    { level: 'warn', msg: 'Could not read the publisher’s balance', code: 'chain_unavailable' },
  ])
  state.isDown = false
  await again()
  expect(seen).toHaveLength(1)
})

test('once it is stopped nothing is asked', async () => {
  const { settle, tasks, stop } = start()
  await settle()
  stop()
  expect(tasks).toEqual([])
})
