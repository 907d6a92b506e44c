import { expect, test } from 'vitest'
import { createFakeLog } from '../../test/ports.ts'
import { ChainError } from './chain/chainError.ts'
import { watchBalance } from './startPipeline.ts'

function start({ isDown = false, wei = 30_000_000n } = {}) {
  const state = { isDown, wei, fee: 3n }
  const seen: string[] = []
  const told: object[] = []
  const tasks: (() => void)[] = []
  const log = createFakeLog()
  const fail = () => Promise.reject(new ChainError('chain_unavailable'))
  const stop = watchBalance({
    chain: {
      account: '0x01',
      chainId: 7,
      getBalance: async () => (state.isDown ? fail() : state.wei),
      getFees: async () => ({ maxFeePerGas: state.fee, maxPriorityFeePerGas: 1n }),
    },
    schedule(task) {
      tasks.push(task)
      return () => void tasks.splice(tasks.indexOf(task), 1)
    },
    log,
    warnOf: async (type, data) => void told.push({ type, data }),
    metrics: { observeBalance: (account, { wei, gas }) => seen.push(`${account} ${wei} ${gas}`) },
  })
  /** Resolves when the current read ends. */
  const settle = () => expect.poll(() => tasks.length).toBe(1)
  const again = async () => {
    tasks.shift()?.()
    await settle()
  }
  return { state, seen, told, tasks, log, stop, settle, again }
}

test('reports the balance and the gas that it pays for', async () => {
  const { seen, settle, again, state } = start()
  await settle()
  state.wei = 6n
  await again()
  expect(seen).toEqual(['0x01 30000000 10000000', '0x01 6 2'])
})

test('warns below twenty million gas', async () => {
  const { told, settle, again, state } = start({ wei: 60_000_000n })
  await settle()
  expect(told).toEqual([])
  state.wei -= 1n
  await again()
  expect(told).toEqual([
    { type: 'publisher.short_of_gas', data: { account: '0x01', chainId: 7, balanceWei: '59999999' } },
  ])
})

test('handles a chain without fees', async () => {
  const { seen, settle, again, state } = start()
  await settle()
  state.fee = 0n
  await again()
  expect(seen.at(-1)).toBe('0x01 30000000 30000000')
})

test('logs an unavailable chain once and retries', async () => {
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

test('makes no request after stop', async () => {
  const { settle, tasks, stop } = start()
  await settle()
  stop()
  expect(tasks).toEqual([])
})
