import { computeCommitment, type Hex, type ServiceError, toHex } from '@countersign/protocol'
import { getAddress, hexToString, stringToHex, verifyMessage, verifyTypedData } from 'viem'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { failureOf } from '../../test/eip1193/failureOf.ts'
import { installTestService } from '../../test/testing/installTestService.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService, TestServiceOptions } from '../testing/testService.ts'
import { createEip1193Provider, type Eip1193ProviderOptions } from './createEip1193Provider.ts'

const stranger: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const typedData = {
  domain: { name: 'App', chainId: 31337 },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: '5' },
} as const

let service: TestService
let own: Hex
beforeEach(() => start({}))

function start(options: TestServiceOptions): void {
  service = installTestService(options)
  own = service.wallet.address
}

function createProvider(options?: Eip1193ProviderOptions) {
  const provider = createEip1193Provider(new ServiceClient(service.config), options)
  const request = provider.request as (parameters: { method: string; params?: unknown }) => Promise<unknown>
  return { provider, ask: (method: string, ...params: unknown[]) => request({ method, params }) }
}

const signings = () => service.requests.filter((request) => request.startsWith('POST /sign/'))

describe('personal_sign', () => {
  test.each<[string, (address: Hex) => unknown[], string | { raw: Hex }]>([
    ['the message, then the account', (address) => ['0x6869', address], 'hi'],
    ['an account with a checksum', (address) => ['0x6869', getAddress(address)], 'hi'],
    ['the account first, as some dapps have it', (address) => [address, '0x6869'], 'hi'],
    ['a password behind, which is none of ours', (address) => ['0x6869', address, 'password'], 'hi'],
    ['plain text', (address) => ['hello', address], 'hello'],
    ['plain text, the account first', (address) => [address, 'hello'], 'hello'],
    ['nothing at all', (address) => ['0x', address], { raw: '0x' }],
    ['empty text', (address) => ['', address], { raw: '0x' }],
    ['an address as the message', (address) => [stranger, address], { raw: stranger }],
    ['the own address as the message', (address) => [address, address], 'own'],
  ])('%s', async (_name, toParams, expected) => {
    const message = expected === 'own' ? { raw: own } : expected
    const signature = (await createProvider().ask('personal_sign', ...toParams(own))) as Hex
    expect(await verifyMessage({ address: own, message, signature })).toBe(true)
  })

  test.each<[string, (address: Hex) => unknown[], number]>([
    ['another account', () => ['0x6869', stranger], 4100],
    ['another account first', () => [stranger, '0x6869'], 4100],
    ['another account behind the own address: it is the message', (address) => [address, stranger], 4100],
    ['no account', () => ['0x6869'], -32602],
    ['no message', (address) => [address], -32602],
    ['no parameters', () => [], -32602],
    ['a message that is a number', (address) => [7, address], -32602],
    ['a message that is null', (address) => [null, address], -32602],
    ['a message that is an object', (address) => [{ raw: '0x' }, address], -32602],
    ['half a byte', (address) => ['0x686', address], -32602],
    ['misspelt hex', (address) => ['0xzz', address], -32602],
    ['a misspelt prefix', (address) => ['0X6869', address], -32602],
    ['half a surrogate pair', (address) => ['a\ud800', address], -32602],
    ['an account that is text', () => ['0x6869', 'me'], -32602],
    ['half an account', (address) => ['0x6869', address.slice(0, 20)], -32602],
  ])('rejects %s before signing', async (_name, toParams, code) => {
    const onConfirm = vi.fn(() => true)
    const { ask } = createProvider({ onConfirm })
    expect((await failureOf(ask('personal_sign', ...toParams(own)))).code).toBe(code)
    expect(onConfirm).not.toHaveBeenCalled()
    expect(signings()).toEqual([])
  })

  test.each([undefined, null, {}, 'hello', { 0: '0x6869' }])('rejects the parameters %j', async (params) => {
    const { provider } = createProvider()
    const request = provider.request as (parameters: object) => Promise<unknown>
    expect((await failureOf(request({ method: 'personal_sign', params }))).code).toBe(-32602)
    expect((await failureOf(request({ method: 'eth_signTypedData_v4', params }))).code).toBe(-32602)
  })
})

describe('eth_signTypedData_v4', () => {
  test('accepts JSON, an object, and the domain’s type, which viem sends', async () => {
    const { ask } = createProvider()
    const EIP712Domain = [
      { name: 'name', type: 'string' },
      { name: 'chainId', type: 'uint256' },
    ]
    const complete = { ...typedData, types: { ...typedData.types, EIP712Domain } }
    for (const given of [typedData, JSON.stringify(typedData), JSON.stringify(complete)]) {
      const signature = (await ask('eth_signTypedData_v4', getAddress(own), given)) as Hex
      expect(await verifyTypedData({ ...typedData, message: { amount: 5n }, address: own, signature })).toBe(true)
    }
  })

  test.each<[string, (address: Hex) => unknown[], number]>([
    ['another account', () => [stranger, typedData], 4100],
    ['the parameters of version 1, the other way round', (address) => [typedData, address], -32602],
    ['no typed data', (address) => [address], -32602],
    ['null', (address) => [address, null], -32602],
    ['JSON of null', (address) => [address, 'null'], -32602],
    ['no JSON', (address) => [address, '{'], -32602],
    ['a list of version 1', (address) => [address, [{ type: 'string', name: 'a', value: 'b' }]], -32602],
    ['another chain', (address) => [address, { ...typedData, domain: { chainId: 1 } }], -32602],
    [
      'a number that JSON rounds',
      (address) => [address, JSON.stringify(typedData).replace('"5"', '9007199254740993')],
      -32602,
    ],
    ['a nesting that no stack holds', (address) => [address, '['.repeat(200_000) + ']'.repeat(200_000)], -32602],
  ])('rejects %s before signing', async (_name, toParams, code) => {
    const onConfirm = vi.fn(() => true)
    const { ask } = createProvider({ onConfirm })
    expect((await failureOf(ask('eth_signTypedData_v4', ...toParams(own)))).code).toBe(code)
    expect(onConfirm).not.toHaveBeenCalled()
    expect(signings()).toEqual([])
  })

  test('rejects with -32003 and the service’s code, and asks once', async () => {
    const { ask } = createProvider()
    const more = { ...typedData, message: { amount: '5', foreign: 1 } }
    const error = await failureOf(ask('eth_signTypedData_v4', own, more))
    expect([error.code, (error.cause as ServiceError).code]).toEqual([-32003, 'invalid_typed_data'])
    expect(signings()).toHaveLength(1)
    expect(service.proofs).toEqual([])
  })
})

describe('the user and the app', () => {
  test('shows the content to the user, who can refuse', async () => {
    const onConfirm = vi.fn(() => false)
    const { ask } = createProvider({ onConfirm })
    expect((await failureOf(ask('personal_sign', stringToHex('hi'), own))).code).toBe(4001)
    expect((await failureOf(ask('eth_signTypedData_v4', own, typedData))).code).toBe(4001)
    expect(onConfirm.mock.calls).toEqual([
      [{ kind: 'message', from: own, message: '0x6869' }],
      [{ kind: 'typed-data', from: own, typedData }],
    ])
    expect(signings()).toEqual([])
  })

  test('ignores changes by a listener', async () => {
    const { ask } = createProvider({
      onConfirm(request) {
        if (request.kind === 'typed-data') request.typedData.message.amount = '6'
        return true
      },
    })
    const signature = (await ask('eth_signTypedData_v4', own, typedData)) as Hex
    expect(await verifyTypedData({ ...typedData, message: { amount: 5n }, address: own, signature })).toBe(true)
  })

  test('ignores changes by the dapp while the user is asked', async () => {
    const request = structuredClone(typedData) as unknown as { message: { amount: string } }
    const { ask } = createProvider({
      onConfirm() {
        request.message.amount = '6'
        return true
      },
    })
    const signature = (await ask('eth_signTypedData_v4', own, request)) as Hex
    expect(await verifyTypedData({ ...typedData, message: { amount: 5n }, address: own, signature })).toBe(true)
  })

  test('passes the opening to the app once, and it opens the proof', async () => {
    const onSigned = vi.fn()
    await createProvider({ onSigned }).ask('personal_sign', '0x6869', own)
    expect(onSigned).toHaveBeenCalledTimes(1)
    const { kind, slug, opening } = onSigned.mock.calls[0]?.[0] ?? {}
    expect([kind, slug]).toEqual(['off-chain', service.proofs[0]?.slug])
    expect(`0x${toHex(computeCommitment(opening))}`).toBe(service.proofs[0]?.txHash)
    expect(hexToString(opening.content.content.message)).toBe('hi')
  })

  test('rejects with 4100 if the permission is revoked while the user is asked', async () => {
    const { ask } = createProvider({
      async onConfirm() {
        await ask('wallet_revokePermissions', { eth_accounts: {} })
        return true
      },
    })
    await ask('eth_requestAccounts')
    expect((await failureOf(ask('personal_sign', '0x6869', own))).code).toBe(4100)
    expect((await failureOf(ask('eth_signTypedData_v4', own, typedData))).code).toBe(4100)
    expect(signings()).toEqual([])
  })

  test('rejects with 4100 without a session or a wallet', async () => {
    start({ signedIn: false })
    expect((await failureOf(createProvider().ask('personal_sign', '0x6869', own))).code).toBe(4100)
    start({ provisioned: false })
    expect((await failureOf(createProvider().ask('personal_sign', '0x6869', own))).code).toBe(4100)
    expect(signings()).toEqual([])
  })
})
