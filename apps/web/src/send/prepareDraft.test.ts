import { ServiceError } from '@countersign/sdk'
import { ServiceClient } from '@countersign/sdk/client'
import { createTestService, type TestServiceOptions } from '@countersign/sdk/testing'
import { parseEther } from 'viem'
import { afterEach, expect, test } from 'vitest'
import type { Payment } from './parseFields.ts'
import { prepareDraft } from './prepareDraft.ts'

let uninstall = () => {}
afterEach(() => uninstall())

const payment: Payment = { to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', valueWei: 1n, data: '0x', gas: null }

function open(options: TestServiceOptions = {}) {
  const service = createTestService(options)
  uninstall = service.install()
  const { publicClient } = new ServiceClient(service.config)
  const prepare = (change: Partial<Payment> = {}) =>
    prepareDraft(publicClient, { from: service.wallet.address, payment: { ...payment, ...change } })
  return { service, prepare }
}

test('a transfer takes 21,000 gas, and its fee is told', async () => {
  const { prepare } = open()
  const result = await prepare()
  expect(result).toMatchObject({ draft: { gas: 21_000n, valueWei: 1n } })
  expect('draft' in result && result.draft.feeWei).toBeGreaterThan(21_000n * 10n ** 9n)
})

test('code gets a fifth more than the estimate; gas given by hand is not estimated', async () => {
  const { service, prepare } = open({ rpc: { eth_estimateGas: () => '0x186a0' } })
  expect(await prepare({ data: '0xab' })).toMatchObject({ draft: { gas: 120_000n } })
  const before = service.requests.filter((request) => request === 'eth_estimateGas').length
  expect(await prepare({ data: '0xab', gas: 77_000n })).toMatchObject({ draft: { gas: 77_000n } })
  expect(service.requests.filter((request) => request === 'eth_estimateGas')).toHaveLength(before)
})

test('a contract as the recipient of a plain payment gets the gas that it needs', async () => {
  const { prepare } = open({ rpc: { eth_estimateGas: () => '0x7530' } })
  expect(await prepare()).toMatchObject({ draft: { gas: 36_000n } })
})

test.each([
  ['more than there is', parseEther('1') + 1n, /more than the balance of 1 ETH/],
  ['nothing left for the fee', parseEther('1'), /at most 0\.99\d+ ETH can be sent/],
])('%s', async (_, valueWei, words) => {
  const { prepare } = open({ balance: parseEther('1') })
  expect(await prepare({ valueWei })).toEqual({ errors: { amount: expect.stringMatching(words) } })
})

test('a balance below the fee', async () => {
  const { prepare } = open({ balance: 1000n })
  expect(await prepare()).toEqual({ errors: { amount: expect.stringMatching(/does not pay the network fee/) } })
})

test('what would revert is told beside what causes it', async () => {
  const eth_estimateGas = () => {
    throw { code: 3, message: 'execution reverted: not yours' }
  }
  const { prepare } = open({ rpc: { eth_estimateGas } })
  const told = expect.stringMatching(/would fail: execution reverted: not yours\. To send/)
  expect(await prepare({ data: '0xab' })).toEqual({ errors: { data: told } })
  expect(await prepare()).toEqual({ errors: { to: told } })
})

test.each(['eth_getBalance', 'eth_estimateGas'] as const)(
  'a node that does not answer %s is no fault of the form',
  async (method) => {
    const { service, prepare } = open()
    service.failNext(method, 'network')
    service.failNext(method, 'network')
    const error = await prepare().catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ServiceError)
    expect(error).toMatchObject({ code: 'rpc_failed', signed: undefined })
  },
)
