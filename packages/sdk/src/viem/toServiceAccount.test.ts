import { type Hex, ServiceError } from '@countersign/protocol'
import {
  BaseError,
  createWalletClient,
  defineChain,
  getAddress,
  http,
  parseTransaction,
  type SerializeTransactionFn,
  type SignableMessage,
  type TransactionSerializable,
  verifyMessage,
  verifyTypedData,
  zeroAddress,
} from 'viem'
import { createNonceManager, jsonRpc } from 'viem/nonce'
import { chainConfig } from 'viem/op-stack'
import { verifyAuthorization } from 'viem/utils'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { installTestService } from '../../test/testing/installTestService.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService } from '../testing/testService.ts'
import { type ToServiceAccountOptions, toServiceAccount } from './toServiceAccount.ts'

const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'

let service: TestService
beforeEach(() => {
  service = installTestService()
})

function createAccount(options?: ToServiceAccountOptions) {
  return toServiceAccount(new ServiceClient(service.config), service.wallet, options)
}

function createWallet(options?: ToServiceAccountOptions) {
  return createWalletClient({ account: createAccount(options), chain: toChain(), transport: http() })
}

function toChain(config = {}) {
  const { chainId, rpcUrl = '' } = service.config
  return defineChain({
    ...config,
    id: chainId,
    name: 'Test',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
}

const complete = {
  type: 'eip1559',
  chainId: 31337,
  nonce: 0,
  to,
  gas: 21_000n,
  maxFeePerGas: 2_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
} as const

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  const cause = error instanceof BaseError ? error.walk((inner) => inner instanceof ServiceError) : error
  expect(cause).toBeInstanceOf(ServiceError)
  return (cause as ServiceError).code
}

describe('sending with a wallet client', () => {
  test('sends a transfer through the service, and calls onSigned with the slug before the broadcast', async () => {
    const onSigned = vi.fn()
    const hash = await createWallet({ onSigned }).sendTransaction({ to, value: 5n })
    expect(service.transactions).toMatchObject([{ hash, from: service.wallet.address, to, value: 5n, gas: 21_000n }])
    expect(onSigned).toHaveBeenCalledExactlyOnceWith({
      kind: 'transaction',
      txHash: hash,
      slug: service.proofs[0]?.slug,
    })
    const { requests } = service
    expect(requests.indexOf('POST /sign/digest')).toBeLessThan(requests.indexOf('eth_sendRawTransaction'))
  })

  test('returns the signature if a listener throws', async () => {
    const uncaught = vi.fn()
    process.once('uncaughtException', uncaught)
    const listeners = process.listeners('uncaughtException').filter((listener) => listener !== uncaught)
    for (const listener of listeners) process.off('uncaughtException', listener)
    try {
      const wallet = createWallet({
        onSigned() {
          throw new Error('listener')
        },
      })
      await wallet.sendTransaction({ to })
      expect(service.transactions).toHaveLength(1)
      expect(uncaught.mock.calls[0]?.[0]).toMatchObject({ message: 'listener' })
    } finally {
      for (const listener of listeners) process.on('uncaughtException', listener)
      process.off('uncaughtException', uncaught)
    }
  })

  test('sends two equal concurrent transactions with a nonce manager', async () => {
    const wallet = createWallet({ nonceManager: createNonceManager({ source: jsonRpc() }) })
    await Promise.all([1, 2].map(() => wallet.sendTransaction({ to, gas: 21_000n })))
    expect(service.transactions.map(({ nonce }) => nonce)).toEqual([0, 1])
  })

  test('sends a contract call on a chain with a compatible serializer (OP stack)', async () => {
    const chain = toChain(chainConfig)
    expect(chain.serializers?.transaction).toBeDefined()
    const wallet = createWalletClient({ account: createAccount(), chain, transport: http() })
    await wallet.sendTransaction({ to, data: '0x1234' })
    expect(service.transactions).toMatchObject([{ data: '0x1234', gas: 21_032n }])
  })

  test.each([
    ['legacy', { to, gasPrice: 2_000_000_000n }],
    ['an access list', { to, accessList: [{ address: to, storageKeys: [] }] }],
    ['a contract creation', { data: '0x00' as Hex }],
    ['another type', { to, type: 'eip2930' as const, gasPrice: 2_000_000_000n }],
  ])('rejects %s before signing', async (_name, request) => {
    expect(await codeOf(createWallet().sendTransaction(request as never))).toBe('unsupported_transaction')
    expect(service.proofs).toEqual([])
  })
})

describe('signTransaction', () => {
  test('returns the signed transaction', async () => {
    const raw = await createAccount().signTransaction({ ...complete, value: 7n })
    expect(parseTransaction(raw)).toMatchObject({ ...complete, value: 7n })
    expect(service.transactions).toEqual([])
  })

  test.each<[string, object]>([
    ['another chain', { chainId: 1 }],
    ['no chain', { chainId: undefined }],
    ['no recipient', { to: undefined }],
    ['null for a recipient', { to: null }],
    ['an access list', { accessList: [{ address: to, storageKeys: [] }] }],
    ['legacy', { type: 'legacy' }],
    ['eip2930', { type: 'eip2930' }],
    ['eip4844', { type: 'eip4844' }],
    ['eip7702', { type: 'eip7702' }],
    ['a gas price', { type: undefined, gasPrice: 1n }],
    ['blobs', { type: undefined, blobs: ['0x'] }],
    ['blob hashes', { blobVersionedHashes: [] }],
    ['an authorization list', { type: undefined, authorizationList: [] }],
  ])('rejects %s', async (_name, change) => {
    const transaction = { ...complete, ...change } as TransactionSerializable
    expect(await codeOf(createAccount().signTransaction(transaction))).toBe('unsupported_transaction')
    expect(service.requests).toEqual([])
  })

  test.each(['nonce', 'gas', 'maxFeePerGas', 'maxPriorityFeePerGas'])(
    'rejects a transaction without %s',
    async (name) => {
      const transaction = { ...complete, [name]: undefined } as TransactionSerializable
      expect(await codeOf(createAccount().signTransaction(transaction))).toBe('invalid_request')
      expect(service.requests).toEqual([])
    },
  )

  test('rejects an incompatible serializer', async () => {
    const serializer: SerializeTransactionFn<TransactionSerializable> = () => '0x02c0' as never
    expect(await codeOf(createAccount().signTransaction(complete, { serializer }))).toBe('unsupported_transaction')
    expect(service.requests).toEqual([])
  })

  test('does not sign for another user who has signed in', async () => {
    const wallet = { ...service.wallet, address: zeroAddress }
    const account = toServiceAccount(new ServiceClient(service.config), wallet)
    expect(await codeOf(account.signTransaction(complete))).toBe('wallet_changed')
    expect(service.proofs).toEqual([])
  })

  test('names the wallet to the service, which rejects another session at the last moment', async () => {
    const client = new ServiceClient(service.config)
    const { getWallet } = client.api
    const wallet = { ...service.wallet, address: zeroAddress }
    client.api.getWallet = async () => {
      client.api.getWallet = getWallet
      return wallet
    }
    expect(await codeOf(toServiceAccount(client, wallet).signTransaction(complete))).toBe('wallet_changed')
    expect(service.proofs).toEqual([])
  })
})

describe('off-chain signatures', () => {
  const typedData = {
    domain: { name: 'App', chainId: 31337n, verifyingContract: to },
    types: { Order: [{ name: 'amount', type: 'uint256' }] },
    primaryType: 'Order',
    message: { amount: 2n ** 200n },
  } as const

  test.each<[string, SignableMessage]>([
    ['text', 'grüße ✓ 🙂'],
    ['no text at all', ''],
    ['bytes', { raw: Uint8Array.of(0, 255) }],
    ['hex in capitals', { raw: '0xABCDEF' }],
  ])('signs a message: %s', async (_name, message) => {
    const onSigned = vi.fn()
    const signature = await createWallet({ onSigned }).signMessage({ message })
    expect(await verifyMessage({ address: service.wallet.address, message, signature })).toBe(true)
    expect(onSigned).toHaveBeenCalledExactlyOnceWith({
      kind: 'off-chain',
      slug: service.proofs[0]?.slug,
      opening: expect.objectContaining({ signature: { salt: expect.any(String), signature } }),
    })
  })

  test('signs typed data with bigints, with the account and a wallet client', async () => {
    const { address } = service.wallet
    const signatures = [createAccount().signTypedData(typedData), createWallet().signTypedData(typedData)]
    for (const signature of await Promise.all(signatures)) {
      expect(await verifyTypedData({ ...typedData, address, signature })).toBe(true)
    }
    expect(service.proofs.map(({ kind, chainId }) => [kind, chainId])).toEqual([
      ['off-chain', 0],
      ['off-chain', 0],
    ])
  })

  test('signs an authorization with either name of its address', async () => {
    service = installTestService({ implementations: [getAddress(to)] })
    const onSigned = vi.fn()
    const wallet = createWallet({ onSigned })
    const authorization = await wallet.signAuthorization({ contractAddress: to, executor: 'self' })
    expect(authorization).toMatchObject({ address: to, chainId: 31337, nonce: 1 })
    expect(await verifyAuthorization({ address: service.wallet.address, authorization })).toBe(true)
    expect(onSigned).toHaveBeenCalledExactlyOnceWith({ kind: 'authorization', slug: service.proofs[0]?.slug })
    expect(await createAccount().signAuthorization?.({ address: to, chainId: 31337, nonce: 1 })).toEqual(authorization)
    expect(service.proofs).toHaveLength(1)
  })

  test.each<[string, number, string]>([
    ['every chain', 0, 'invalid_request'],
    ['another chain', 1, 'invalid_request'],
    ['code that is not on the list', 31337, 'authorization_not_allowed'],
  ])('rejects an authorization for %s', async (_name, chainId, code) => {
    expect(await codeOf(createWallet().signAuthorization({ address: to, chainId, nonce: 0 }))).toBe(code)
    expect(service.proofs).toEqual([])
  })

  test('does not sign for another user who has signed in', async () => {
    const wallet = { ...service.wallet, address: zeroAddress }
    const account = toServiceAccount(new ServiceClient(service.config), wallet)
    expect(await codeOf(account.signMessage({ message: 'x' }))).toBe('wallet_changed')
    expect(await codeOf(account.signTypedData(typedData))).toBe('wallet_changed')
    expect(await codeOf(Promise.resolve(account.signAuthorization?.({ address: to, chainId: 31337, nonce: 0 })))).toBe(
      'wallet_changed',
    )
    expect(service.requests).toEqual(['GET /wallet/me', 'GET /wallet/me', 'GET /wallet/me'])
  })

  test('never signs a bare hash', async () => {
    const signing = createAccount().sign?.({ hash: `0x${'ab'.repeat(32)}` })
    expect(await codeOf(Promise.resolve(signing))).toBe('unsupported_method')
    expect(service.requests).toEqual([])
  })
})
