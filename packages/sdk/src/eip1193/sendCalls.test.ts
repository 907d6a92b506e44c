import { type Hex, numberToHex } from 'viem'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { failureOf } from '../../test/eip1193/failureOf.ts'
import { installTestService } from '../../test/testing/installTestService.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService } from '../testing/testService.ts'
import { createEip1193Provider, type Eip1193ProviderOptions } from './createEip1193Provider.ts'

const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const call = { to, value: numberToHex(1n) }

let service: TestService
let stored: Map<string, string>
beforeEach(() => {
  service = installTestService()
  stored = new Map()
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  })
})

function createProvider(options?: Eip1193ProviderOptions) {
  const provider = createEip1193Provider(new ServiceClient(service.config), options)
  const ask = (method: string, params: unknown) =>
    (provider.request as never as (of: object) => Promise<never>)({ method, params })
  const send = (changes: object = {}): Promise<{ id: string }> =>
    ask('wallet_sendCalls', [{ version: '2.0.0', chainId: '0x7a69', atomicRequired: false, calls: [call], ...changes }])
  const getStatus = (
    id: string,
  ): Promise<{ status: number; receipts: { transactionHash: Hex }[]; capabilities: object }> =>
    ask('wallet_getCallsStatus', [id])
  return { ask, send, getStatus }
}

describe('wallet_sendCalls', () => {
  test('sends calls one after the other, and lists receipts and proofs', async () => {
    const { send, getStatus } = createProvider()
    const { id } = await send({ calls: [call, { to, data: '0x', value: '0x2' }, { to }] })
    await expect.poll(async () => (await getStatus(id)).status).toBe(200)
    const { receipts, capabilities, ...status } = await getStatus(id)
    expect(status).toEqual({ version: '2.0.0', id, chainId: '0x7a69', status: 200, atomic: false })
    expect(receipts.map(({ transactionHash }) => transactionHash)).toEqual(service.transactions.map(({ hash }) => hash))
    expect(receipts).toMatchObject([{ status: '0x1' }, { status: '0x1' }, { status: '0x1' }])
    expect(capabilities).toEqual({ countersign: { slugs: service.transactions.map(() => expect.any(String)) } })
  })

  test('keeps the id of the app, and its status over a reload', async () => {
    const { id } = await createProvider().send({ id: 'mine' })
    expect(id).toBe('mine')
    const afterReload = createProvider()
    expect((await afterReload.getStatus('mine')).status).toBe(200)
    expect((await failureOf(afterReload.send({ id: 'mine' }))).code).toBe(5720)
    expect(service.transactions).toHaveLength(1)
  })

  test('remembers batches without storage, on this page', async () => {
    vi.stubGlobal('localStorage', undefined)
    const { send, getStatus } = createProvider()
    const { id } = await send()
    expect((await getStatus(id)).status).toBe(200)
  })

  test.each<[string, number, object]>([
    ['atomic execution', 5760, { atomicRequired: true }],
    ['another chain', 5710, { chainId: '0x1' }],
    ['a required capability', 5700, { capabilities: { paymasterService: { url: 'https://pay.example' } } }],
    ['a required capability of a call', 5700, { calls: [{ ...call, capabilities: { gas: {} } }] }],
    ['too many calls', 5740, { calls: Array(33).fill(call) }],
    ['another account', 4100, { from: `0x${'11'.repeat(20)}` }],
    ['no calls', -32602, { calls: [] }],
    ['calls that are no list', -32602, { calls: call }],
    ['another version', -32602, { version: '1.0' }],
    ['an id that is no text', -32602, { id: 7 }],
    ['a chain in decimal', -32602, { chainId: 31337 }],
    ['a call without a recipient', -32602, { calls: [{ value: '0x1' }] }],
  ])('rejects %s with %i, and sends nothing', async (_, code, changes) => {
    const { send } = createProvider()
    expect((await failureOf(send(changes))).code).toBe(code)
    expect([service.transactions, stored.size]).toEqual([[], 0])
  })

  test('accepts an optional capability', async () => {
    const { id } = await createProvider().send({ capabilities: { paymasterService: { optional: true } } })
    expect(id).toEqual(expect.any(String))
  })

  test('a batch does not exist if the user rejects its first call', async () => {
    const { send, getStatus } = createProvider({ onConfirm: () => false })
    expect((await failureOf(send({ id: 'mine' }))).code).toBe(4001)
    expect((await failureOf(getStatus('mine'))).code).toBe(5730)
  })

  test('a batch is partial if the user rejects a later call', async () => {
    const answers = [true, false]
    const { send, getStatus } = createProvider({ onConfirm: () => answers.shift() ?? true })
    const { id } = await send({ calls: [call, call, call] })
    await expect.poll(async () => (await getStatus(id)).status).toBe(600)
    expect((await getStatus(id)).receipts).toHaveLength(1)
  })

  test('a batch whose page was closed stays pending for two minutes, then is partial', async () => {
    const { getStatus, send } = createProvider()
    await send({ id: 'mine' })
    const change = (updatedMs: number) => {
      const [[key, text]] = [...stored] as [[string, string]]
      stored.set(
        key,
        JSON.stringify(JSON.parse(text).map((batch: object) => ({ ...batch, calls: 2, isOver: false, updatedMs }))),
      )
    }
    change(Date.now() - 100_000)
    expect((await getStatus('mine')).status).toBe(100)
    change(Date.now() - 130_000)
    expect((await getStatus('mine')).status).toBe(600)
  })
})

test('wallet_showCallsStatus passes the id to the page, and knows no other', async () => {
  const onShowCalls = vi.fn()
  const { ask, send } = createProvider({ onShowCalls })
  const { id } = await send()
  expect(await ask('wallet_showCallsStatus', [id])).toBeNull()
  expect(onShowCalls).toHaveBeenCalledExactlyOnceWith(id)
  for (const params of [['other'], [], undefined]) {
    expect((await failureOf(ask('wallet_showCallsStatus', params))).code).toBe(5730)
  }
})
