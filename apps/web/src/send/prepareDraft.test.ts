import { ServiceError } from '@countersign/sdk'
import { ServiceClient } from '@countersign/sdk/client'
import { createTestService, type TestServiceOptions } from '@countersign/sdk/testing'
import { parseEther } from 'viem'
import { afterEach, describe, expect, test } from 'vitest'
import type { Token } from '../config.ts'
import { type Payment, toTokenPayment } from './parseFields.ts'
import { type Draft, prepareAgain, prepareDraft, prepareMax } from './prepareDraft.ts'

let uninstall = () => {}
afterEach(() => uninstall())

const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const payment: Payment = { to: recipient, valueWei: 1n, data: '0x', gas: null, transfer: null }

function open(options: TestServiceOptions = {}) {
  const service = createTestService(options)
  uninstall = service.install()
  const { publicClient } = new ServiceClient(service.config)
  const from = service.wallet.address
  const toParameters = (change: Partial<Payment>) => ({ from, payment: { ...payment, ...change }, coin: 'ETH' })
  const prepare = (change: Partial<Payment> = {}) => prepareDraft(publicClient, toParameters(change))
  const max = (change: Partial<Payment> = {}) => prepareMax(publicClient, toParameters(change))
  const again = (draft: Draft) => prepareAgain(publicClient, { from, draft, coin: 'ETH' })
  return { service, prepare, max, again }
}

test('estimates 21,000 gas and the fee for a transfer', async () => {
  const { prepare } = open()
  const result = await prepare()
  expect(result).toMatchObject({ draft: { gas: 21_000n, valueWei: 1n } })
  expect('draft' in result && result.draft.feeWei).toBeGreaterThan(21_000n * 10n ** 9n)
})

test('adds 20% to an estimate, but not to gas that the user entered', async () => {
  const { service, prepare } = open({ rpc: { eth_estimateGas: () => '0x186a0' } })
  expect(await prepare({ data: '0xab' })).toMatchObject({ draft: { gas: 120_000n } })
  const before = service.requests.filter((request) => request === 'eth_estimateGas').length
  expect(await prepare({ data: '0xab', gas: 77_000n })).toMatchObject({ draft: { gas: 77_000n } })
  expect(service.requests.filter((request) => request === 'eth_estimateGas')).toHaveLength(before)
})

test('estimates the gas of a plain payment to a contract', async () => {
  const { prepare } = open({ rpc: { eth_estimateGas: () => '0x7530' } })
  expect(await prepare()).toMatchObject({ draft: { gas: 36_000n } })
})

test.each([
  ['rejects more than the balance', parseEther('1') + 1n, /Insufficient balance: 1 ETH/],
  ['rejects the full balance, which leaves no fee', parseEther('1'), /send at most 0\.99\d+ ETH/],
])('%s', async (_, valueWei, words) => {
  const { prepare } = open({ balance: parseEther('1') })
  expect(await prepare({ valueWei })).toEqual({ errors: { amount: expect.stringMatching(words) } })
})

test('rejects a balance below the fee', async () => {
  const { prepare } = open({ balance: 1000n })
  expect(await prepare()).toEqual({ errors: { amount: expect.stringMatching(/doesn’t cover the network fee/) } })
})

test('reports a revert at the field that causes it', async () => {
  const eth_estimateGas = () => {
    throw { code: 3, message: 'execution reverted: not yours' }
  }
  const { prepare } = open({ rpc: { eth_estimateGas } })
  const told = expect.stringMatching(/would fail: execution reverted: not yours\. To send/)
  expect(await prepare({ data: '0xab' })).toEqual({ errors: { data: told } })
  expect(await prepare()).toEqual({ errors: { to: told } })
})

test.each(['eth_getBalance', 'eth_estimateGas'] as const)(
  'rejects with an RPC error if the node fails %s',
  async (method) => {
    const { service, prepare } = open()
    service.failNext(method, 'network')
    service.failNext(method, 'network')
    const error = await prepare().catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ServiceError)
    expect(error).toMatchObject({ code: 'rpc_failed', signed: undefined })
  },
)

const draftOf = (prepared: Awaited<ReturnType<typeof prepareDraft>>): Draft => {
  if ('errors' in prepared) throw new Error(JSON.stringify(prepared.errors))
  return prepared.draft
}
const word = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`
const gwei = (fee: { gwei: bigint }) => ({ eth_maxPriorityFeePerGas: () => `0x${(fee.gwei * 10n ** 9n).toString(16)}` })

describe('the maximum amount', () => {
  test('is the balance minus a reserve for the fee', async () => {
    const { max } = open({ balance: parseEther('1') })
    const { valueWei, feeWei, isMax } = draftOf(await max())
    expect(isMax).toBe(true)
    expect(parseEther('1') - valueWei).toBe((feeWei * 3n) / 2n)
  })

  test.each([
    ['nothing', 0n, /balance is 0 ETH/],
    ['less than the fee', 1000n, /doesn’t cover the network fee/],
  ])('reports a balance of %s', async (_, balance, words) => {
    expect(await open({ balance }).max()).toEqual({ errors: { amount: expect.stringMatching(words) } })
  })

  test('covers a fee increase of 50%. Beyond that, it is reduced and needs another confirmation', async () => {
    const fee = { gwei: 10n }
    const { max, again } = open({ balance: parseEther('1'), rpc: gwei(fee) })
    const draft = draftOf(await max())
    fee.gwei = 15n
    expect(draftOf(await again(draft))).toMatchObject({ valueWei: draft.valueWei, isDearer: false })
    fee.gwei = 100n
    const renewed = draftOf(await again(draft))
    expect(renewed.isDearer).toBe(true)
    expect(renewed.valueWei).toBe(parseEther('1') - (renewed.feeWei * 3n) / 2n)
    expect(draftOf(await again(renewed))).toMatchObject({ valueWei: renewed.valueWei, isDearer: false })
  })

  test('reserves the gas of a contract call', async () => {
    const { max } = open({ rpc: { eth_estimateGas: () => '0x7530' } })
    expect(draftOf(await max()).gas).toBe(36_000n)
    expect(draftOf(await max({ gas: 50_000n })).gas).toBe(50_000n)
  })

  test('subtracts the data fee on a rollup', async () => {
    const { max } = open({ balance: parseEther('1'), rpc: { eth_call: () => word(10n ** 15n) } })
    const { valueWei, feeWei, dataFeeWei } = draftOf(await max())
    expect(dataFeeWei).toBe(10n ** 15n)
    expect(feeWei).toBeGreaterThan(10n ** 15n)
    expect(parseEther('1') - valueWei).toBe((feeWei * 3n) / 2n)
  })
})

describe('a token', () => {
  const token: Token = { chainId: 31337, address: `0x${'ab'.repeat(20)}`, symbol: 'TEST', decimals: 6, name: 'Test' }
  const pay = (amount: bigint) => toTokenPayment({ token, recipient, amount })
  const holding = (answer: string) => ({
    eth_call: ([request]: readonly unknown[]) => ((request as { to: string }).to === token.address ? answer : '0x'),
  })

  test('is paid from the token balance, with the fee in ether', async () => {
    const { prepare, max } = open({ rpc: holding(word(5_000_000n)) })
    expect(draftOf(await prepare(pay(5_000_000n)))).toMatchObject({ valueWei: 0n, transfer: { amount: 5_000_000n } })
    expect(await prepare(pay(5_000_001n))).toEqual({
      errors: { amount: 'Insufficient balance: 5 TEST.' },
    })
    expect(draftOf(await max(pay(1n)))).toMatchObject({ data: pay(5_000_000n).data, isMax: true })
  })

  test('reports a token balance of 0', async () => {
    const { max } = open({ rpc: holding(word(0n)) })
    expect(await max(pay(1n))).toEqual({ errors: { amount: expect.stringMatching(/0 TEST/) } })
  })

  test('reports missing ether for the fee', async () => {
    const { prepare } = open({ balance: 0n, rpc: holding(word(5n)) })
    expect(await prepare(pay(5n))).toEqual({ errors: { amount: expect.stringMatching(/0 ETH doesn’t cover/) } })
  })

  test('reports a token that reverts', async () => {
    const eth_estimateGas = () => {
      throw { code: 3, message: 'execution reverted: frozen' }
    }
    const { prepare } = open({ rpc: { ...holding(word(5n)), eth_estimateGas } })
    expect(await prepare(pay(5n))).toEqual({ errors: { amount: expect.stringMatching(/would fail: .*frozen\.$/) } })
  })

  test.each([
    ['no contract', '0x'],
    ['half a number', '0x01'],
    ['more than a number', `${word(5n)}00`],
  ])('rejects a token whose address is %s', async (_, answer) => {
    const error = await open({ rpc: holding(answer) })
      .prepare(pay(1n))
      .catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'rpc_failed', details: 'TEST is not a token on this chain' })
  })
})
