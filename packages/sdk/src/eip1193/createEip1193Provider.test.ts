import { runInNewContext } from 'node:vm'
import { type Hex, ServiceError } from '@countersign/protocol'
import { createWalletClient, custom, getAddress, numberToHex } from 'viem'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { failureOf } from '../../test/eip1193/failureOf.ts'
import { installTestService } from '../../test/testing/installTestService.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService } from '../testing/testService.ts'
import { createEip1193Provider, type Eip1193ProviderOptions } from './createEip1193Provider.ts'
import type { Eip1193Error } from './errors.ts'

const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const unknownAddress: Hex = `0x${'00'.repeat(20)}`

let service: TestService
beforeEach(() => {
  service = installTestService()
})

type Request = (parameters: { method: string; params?: unknown }) => Promise<unknown>

function createProvider(options?: Eip1193ProviderOptions) {
  const provider = createEip1193Provider(new ServiceClient(service.config), options)
  const events: [string, unknown][] = []
  for (const name of ['connect', 'disconnect', 'accountsChanged', 'chainChanged', 'message'] as const) {
    provider.on(name, (value: unknown) => events.push([name, value]))
  }
  const request = provider.request as Request
  const ask = (method: string, ...params: unknown[]) => request({ method, params })
  return { provider, events, request, ask }
}

function causeOf({ cause }: Eip1193Error): string {
  expect(cause).toBeInstanceOf(ServiceError)
  return (cause as ServiceError).code
}

describe('accounts', () => {
  test('returns the signed-in user’s account', async () => {
    const { ask, events } = createProvider()
    expect(await ask('eth_accounts')).toEqual([service.wallet.address])
    expect(await ask('eth_requestAccounts')).toEqual([service.wallet.address])
    expect(events).toEqual([
      ['connect', { chainId: '0x7a69' }],
      ['accountsChanged', [service.wallet.address]],
    ])
  })

  test('returns none without a session, and the error says to sign in', async () => {
    service = installTestService({ signedIn: false })
    const { ask, events } = createProvider()
    expect(await ask('eth_accounts')).toEqual([])
    const error = await failureOf(ask('eth_requestAccounts'))
    expect([error.code, causeOf(error)]).toEqual([4100, 'not_authenticated'])
    expect(events).toEqual([])
  })

  test('onLogin gets the sign-in URL; returns the account if the user signs in', async () => {
    service = installTestService({ signedIn: false })
    const onLogin = vi.fn(() => service.signIn())
    const { ask } = createProvider({ onLogin })
    expect(await ask('eth_requestAccounts')).toEqual([service.wallet.address])
    expect(onLogin).toHaveBeenCalledExactlyOnceWith('https://service.test/auth')
  })

  test('onLogin gets the address that the session starts with', async () => {
    service = installTestService({ signedIn: false })
    const onLogin = vi.fn()
    const session = { prepare: async () => ({}), startLogin: async (_: unknown, url: string) => `${url}?client_key=04` }
    const client = new ServiceClient({ ...service.config, session })
    await failureOf(createEip1193Provider(client, { onLogin }).request({ method: 'eth_requestAccounts' } as never))
    expect(onLogin).toHaveBeenCalledExactlyOnceWith('https://service.test/auth?client_key=04')
  })

  test('calls onLogin for a session without the key of this browser', async () => {
    const onLogin = vi.fn()
    const error = new ServiceError('session_not_bound', 'x')
    const session = { prepare: () => Promise.reject(error), startLogin: async (_: unknown, url: string) => url }
    const client = new ServiceClient({ ...service.config, session })
    const request = createEip1193Provider(client, { onLogin }).request({ method: 'eth_requestAccounts' } as never)
    expect((await failureOf(request)).code).toBe(4100)
    expect(onLogin).toHaveBeenCalledOnce()
  })

  test('rejects with 4100 if onLogin only redirects, and calls it once per request', async () => {
    service = installTestService({ signedIn: false })
    const onLogin = vi.fn()
    const { ask } = createProvider({ onLogin })
    expect((await failureOf(ask('eth_requestAccounts'))).code).toBe(4100)
    expect(onLogin).toHaveBeenCalledTimes(1)
    expect(await ask('eth_accounts')).toEqual([])
    expect(onLogin).toHaveBeenCalledTimes(1)
  })

  test('rejects with 4900 and does not call onLogin if the service is down', async () => {
    const onLogin = vi.fn()
    const { ask } = createProvider({ onLogin })
    service.failNext('GET /wallet/me', 'network')
    const error = await failureOf(ask('eth_requestAccounts'))
    expect([error.code, causeOf(error)]).toEqual([4900, 'network_unreachable'])
    service.failNext('GET /wallet/me', { code: 'internal' })
    expect((await failureOf(ask('eth_accounts'))).code).toBe(-32603)
    expect(onLogin).not.toHaveBeenCalled()
  })

  test('eth_requestAccounts creates a missing wallet, eth_accounts does not', async () => {
    service = installTestService({ provisioned: false })
    const { ask } = createProvider()
    expect(await ask('eth_accounts')).toEqual([])
    expect(service.requests).toEqual(['GET /wallet/me'])
    expect(await ask('eth_requestAccounts')).toEqual([service.wallet.address])
    expect(await ask('eth_accounts')).toEqual([service.wallet.address])
  })

  test('emits accountsChanged and disconnect once when the session ends', async () => {
    const { ask, events } = createProvider()
    await ask('eth_requestAccounts')
    events.length = 0
    service.signOut()
    expect(await ask('eth_accounts')).toEqual([])
    expect(await ask('eth_accounts')).toEqual([])
    expect(events).toEqual([
      ['disconnect', expect.objectContaining({ code: 4900 })],
      ['accountsChanged', []],
    ])
  })

  test('removes listeners, and ignores unknown ones', async () => {
    const { provider, ask } = createProvider()
    const listener = vi.fn()
    provider.on('accountsChanged', listener)
    provider.removeListener('accountsChanged', listener)
    provider.removeListener('accountsChanged', listener)
    await ask('eth_accounts')
    expect(listener).not.toHaveBeenCalled()
  })
})

describe('permissions', () => {
  test('can be requested, read and revoked without ending the session', async () => {
    const { ask, events } = createProvider()
    const permission = {
      parentCapability: 'eth_accounts',
      caveats: [{ type: 'restrictReturnedAccounts', value: [service.wallet.address] }],
    }
    expect(await ask('wallet_requestPermissions', { eth_accounts: {} })).toEqual([permission])
    expect(await ask('wallet_getPermissions')).toEqual([permission])
    events.length = 0
    expect(await ask('wallet_revokePermissions', { eth_accounts: {} })).toBeNull()
    expect(await ask('eth_accounts')).toEqual([])
    expect(await ask('wallet_getPermissions')).toEqual([])
    expect((await failureOf(ask('eth_sendTransaction', { to }))).code).toBe(4100)
    expect(events).toEqual([['accountsChanged', []]])
    expect(service.proofs).toEqual([])
    expect(await ask('eth_requestAccounts')).toEqual([service.wallet.address])
  })

  test('returns no account if the permission is revoked during the lookup', async () => {
    const { ask, events } = createProvider()
    const looking = ask('eth_accounts')
    const asking = ask('eth_requestAccounts').catch((error: Eip1193Error) => error.code)
    await ask('wallet_revokePermissions', { eth_accounts: {} })
    expect(await looking).toEqual([])
    expect(await asking).toBe(4001)
    expect(await ask('eth_accounts')).toEqual([])
    expect(events).toEqual([])
  })

  test.each([[[]], [[{}]], [[{ eth_accounts: {}, snap: {} }]], [['eth_accounts']], [undefined]])(
    'rejects the permission %j',
    async (params) => {
      const { request } = createProvider()
      expect((await failureOf(request({ method: 'wallet_requestPermissions', params }))).code).toBe(-32602)
      expect((await failureOf(request({ method: 'wallet_revokePermissions', params }))).code).toBe(-32602)
    },
  )

  test('has no capabilities, and reports them only for its account', async () => {
    const { ask } = createProvider()
    const none = { '0x7a69': { atomic: { status: 'unsupported' } } }
    expect(await ask('wallet_getCapabilities', getAddress(service.wallet.address))).toEqual(none)
    expect((await failureOf(ask('wallet_getCapabilities', unknownAddress))).code).toBe(4100)
  })
})

describe('the chain', () => {
  test('is the client’s, without a request', async () => {
    const { ask } = createProvider()
    expect(await ask('eth_chainId')).toBe('0x7a69')
    expect(await ask('net_version')).toBe('31337')
    expect(service.requests).toEqual([])
  })

  test('switches only to itself', async () => {
    const { ask } = createProvider()
    expect(await ask('wallet_switchEthereumChain', { chainId: '0x7a69' })).toBeNull()
    expect((await failureOf(ask('wallet_switchEthereumChain', { chainId: '0x1' }))).code).toBe(4902)
    expect((await failureOf(ask('wallet_addEthereumChain', { chainId: '0x1' }))).code).toBe(4200)
    for (const chainId of [31337, '31337', undefined, '0x']) {
      expect((await failureOf(ask('wallet_switchEthereumChain', { chainId }))).code).toBe(-32602)
    }
  })

  test('passes read-only requests to the RPC and returns its errors unchanged', async () => {
    service = installTestService({
      rpc: {
        eth_call: () => {
          throw { code: 3, message: 'execution reverted', data: '0x08c379a0' }
        },
      },
    })
    const { ask } = createProvider()
    expect(await ask('eth_getBalance', to, 'latest')).toBe('0x0')
    const error = await failureOf(ask('eth_call', { to }))
    expect(error).toMatchObject({ code: 3, message: 'execution reverted', data: '0x08c379a0' })
    expect((await failureOf(ask('eth_getBalance', '0x12'))).code).toBe(-32602)
    expect((await failureOf(ask('eth_getCode', to))).code).toBe(-32601)
  })

  test('rejects with 4901 if the RPC is unreachable', async () => {
    const { ask } = createProvider()
    // viem retries once.
    service.failNext('eth_blockNumber', 'network')
    service.failNext('eth_blockNumber', 'network')
    expect((await failureOf(ask('eth_blockNumber'))).code).toBe(4901)
    const client = new ServiceClient({ apiBaseUrl: 'https://service.test', chainId: 5 })
    const error = await failureOf((createEip1193Provider(client).request as Request)({ method: 'eth_blockNumber' }))
    expect([error.code, causeOf(error)]).toEqual([4901, 'rpc_url_missing'])
  })
})

describe('unsupported methods reject with 4200', () => {
  test.each([
    ['eth_sign', 'personal_sign'],
    ['eth_signTypedData', 'eth_signTypedData_v4'],
    ['eth_signTypedData_v1', 'eth_signTypedData_v4'],
    ['eth_signTypedData_v3', 'eth_signTypedData_v4'],
    ['eth_signTransaction', 'eth_sendTransaction'],
  ])('%s: the error suggests %s', async (method, other) => {
    const onConfirm = vi.fn(() => true)
    const error = await failureOf(
      createProvider({ onConfirm }).ask(method, service.wallet.address, `0x${'ab'.repeat(32)}`),
    )
    expect([error.code, causeOf(error)]).toEqual([4200, 'unsupported_method'])
    expect(error.message).toContain(`use ${other}`)
    expect(onConfirm).not.toHaveBeenCalled()
    expect(service.requests).toEqual([])
  })

  test.each(['eth_sendRawTransaction', 'wallet_watchAsset', 'eth_mine', 'evm_revert', 'constructor', ''])(
    '%s',
    async (method) => {
      expect((await failureOf(createProvider().ask(method))).code).toBe(4200)
      expect(service.requests).toEqual([])
    },
  )

  test.each([undefined, null, 'eth_accounts', {}, { method: 1 }, []])('rejects the request %j', async (parameters) => {
    expect((await failureOf(createProvider().request(parameters as never))).code).toBe(-32602)
  })
})

describe('eth_sendTransaction', () => {
  test('adds gas, nonce and fees, and reports the slug', async () => {
    const onSigned = vi.fn()
    const { ask } = createProvider({ onSigned })
    const from = getAddress(service.wallet.address)
    const hash = await ask('eth_sendTransaction', { from, to: getAddress(to), value: '0x5', data: '0x01' })
    expect(service.transactions).toMatchObject([{ hash, to, value: 5n, data: '0x01', gas: 21_016n, nonce: 0 }])
    expect(onSigned).toHaveBeenCalledExactlyOnceWith({
      kind: 'transaction',
      txHash: hash,
      slug: service.proofs[0]?.slug,
    })
  })

  test('keeps the given gas, and accepts input as data', async () => {
    const { ask } = createProvider()
    await ask('eth_sendTransaction', {
      to,
      gas: '0xc350',
      input: '0x02',
      type: '0x2',
      chainId: '0x7a69',
      accessList: [],
    })
    expect(service.transactions).toMatchObject([{ gas: 50_000n, data: '0x02', value: 0n }])
    expect(service.requests).not.toContain('eth_estimateGas')
  })

  test.each<[string, object]>([
    ['no recipient', { to: undefined }],
    ['null for a recipient', { to: null }],
    ['a legacy transaction', { gasPrice: '0x1' }],
    ['type 0', { type: '0x0' }],
    ['type 4', { type: '0x4' }],
    ['an access list', { accessList: [{ address: to, storageKeys: [] }] }],
    ['blobs', { blobVersionedHashes: [] }],
    ['authorizations', { authorizationList: [] }],
  ])('rejects %s with -32602 and unsupported_transaction', async (_name, change) => {
    const error = await failureOf(createProvider().ask('eth_sendTransaction', { to, ...change }))
    expect([error.code, causeOf(error)]).toEqual([-32602, 'unsupported_transaction'])
    expect(service.requests).toEqual([])
  })

  test.each<[string, object]>([
    ['a recipient with a wrong checksum', { to: '0x70997970C51812dc3A010C7d01b50e0d17dc79c8' }],
    ['a name for a recipient', { to: 'user.eth' }],
    ['a short recipient', { to: '0x12' }],
    ['a decimal value', { value: '10' }],
    ['a negative value', { value: -1 }],
    ['a fraction', { value: 0.5 }],
    ['an empty quantity', { value: '0x' }],
    ['odd data', { data: '0x1' }],
    ['data and input that differ', { data: '0x01', input: '0x02' }],
    ['a sender that is not an address', { from: 'me' }],
    ['gas in words', { gas: 'much' }],
  ])('rejects %s with -32602', async (_name, change) => {
    const error = await failureOf(createProvider().ask('eth_sendTransaction', { to, ...change }))
    expect(error.code).toBe(-32602)
    expect(service.requests).toEqual([])
  })

  test('accepts requests of another realm or class and reads all their members', async () => {
    const { request } = createProvider()
    const foreign = runInNewContext(`({ method: 'eth_sendTransaction', params: [{ to: '${to}' }] })`)
    expect(await request(foreign)).toMatch(/^0x[0-9a-f]{64}$/)
    class Transaction {
      to = to
      get gasPrice() {
        return '0x1'
      }
    }
    const legacy = new (class {
      method = 'eth_sendTransaction'
      params = [new Transaction()]
    })()
    expect(causeOf(await failureOf(request(legacy)))).toBe('unsupported_transaction')
  })

  test.each([[[]], [undefined], [['0x']], [{ to }]])('rejects the parameters %j', async (params) => {
    expect((await failureOf(createProvider().request({ method: 'eth_sendTransaction', params }))).code).toBe(-32602)
  })

  test('rejects another sender, another chain and a missing session', async () => {
    const { ask } = createProvider()
    expect((await failureOf(ask('eth_sendTransaction', { from: unknownAddress, to }))).code).toBe(4100)
    expect((await failureOf(ask('eth_sendTransaction', { to, chainId: '0x1' }))).code).toBe(4901)
    service.signOut()
    expect((await failureOf(ask('eth_sendTransaction', { to }))).code).toBe(4100)
    service = installTestService({ provisioned: false })
    expect((await failureOf(createProvider().ask('eth_sendTransaction', { to }))).code).toBe(4100)
    expect(service.proofs).toEqual([])
  })

  test('applies or rejects a given nonce or fee, and never ignores it', async () => {
    const { ask } = createProvider()
    // Base fee 1 gwei and priority fee 1 gwei: viem uses 2.2 gwei.
    const fees = { maxFeePerGas: numberToHex(2_200_000_000n), maxPriorityFeePerGas: numberToHex(1_000_000_000n) }
    await ask('eth_sendTransaction', { to, nonce: '0x0', ...fees })
    expect(service.transactions).toMatchObject([{ nonce: 0, maxFeePerGas: 2_200_000_000n }])
    for (const change of [
      { nonce: '0x0' },
      { nonce: '0x2' },
      { maxFeePerGas: numberToHex(2_199_999_999n) },
      { maxPriorityFeePerGas: '0x0' },
    ]) {
      const error = await failureOf(ask('eth_sendTransaction', { to, ...change }))
      expect([error.code, causeOf(error)]).toEqual([-32003, 'invalid_request'])
      expect(error.message).toContain('cannot be overridden')
    }
    expect(service.proofs).toHaveLength(1)
  })

  test('asks the user, who can refuse', async () => {
    const onConfirm = vi.fn(() => false)
    const { ask } = createProvider({ onConfirm })
    expect((await failureOf(ask('eth_sendTransaction', { to, value: '0x1' }))).code).toBe(4001)
    const asked = { kind: 'transaction', from: service.wallet.address, to, value: 1n, data: '0x', gas: 21_000n }
    expect(onConfirm).toHaveBeenCalledExactlyOnceWith(asked)
    expect(service.proofs).toEqual([])
    onConfirm.mockReturnValue(true)
    await ask('eth_sendTransaction', { to, value: '0x1' })
    expect(service.transactions).toHaveLength(1)
  })

  test('does not sign a call that reverts, and returns the revert’s data', async () => {
    service = installTestService({
      rpc: {
        eth_estimateGas: () => {
          throw { code: 3, message: 'execution reverted', data: '0x08c379a0' }
        },
      },
    })
    const error = await failureOf(createProvider().ask('eth_sendTransaction', { to, data: '0x01' }))
    expect(error).toMatchObject({ code: 3, data: '0x08c379a0' })
    expect(service.proofs).toEqual([])
  })

  test('the cause has the code of the service’s error', async () => {
    const { ask } = createProvider()
    service.failNext('POST /sign/digest', { code: 'rate_limited', retryAfterS: 1 })
    const limited = await failureOf(ask('eth_sendTransaction', { to }))
    expect([limited.code, causeOf(limited)]).toEqual([-32003, 'rate_limited'])
    service.failNext('POST /sign/digest', { code: 'session_expired' })
    const expired = await failureOf(ask('eth_sendTransaction', { to }))
    expect([expired.code, causeOf(expired)]).toEqual([4100, 'session_expired'])
  })

  test('after the signing, every error is -32003 and has `signed`', async () => {
    const { ask } = createProvider()
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'transaction underpriced' })
    const error = await failureOf(ask('eth_sendTransaction', { to }))
    expect([error.code, causeOf(error)]).toEqual([-32003, 'rpc_underpriced'])
    expect((error.cause as ServiceError).signed?.attestationSlug).toBe(service.proofs[0]?.slug)
  })

  test('rejects with -32003 if it may have been signed, even if the session has ended', async () => {
    const { ask, events } = createProvider()
    await ask('eth_requestAccounts')
    service.failNext('POST /sign/digest', 'network')
    service.failNext('POST /sign/digest', { code: 'session_expired' })
    const error = await failureOf(ask('eth_sendTransaction', { to }))
    expect([error.code, causeOf(error)]).toEqual([-32003, 'network_unreachable'])
    expect(error.message).toContain('may have been signed')
    expect(events.map(([name]) => name)).toEqual(['connect', 'accountsChanged'])
  })

  test('rejects with -32003 before signing if another user has signed in', async () => {
    const { ask } = createProvider({ onConfirm: () => switchUser() })
    let isOther = false
    const switchUser = () => (isOther = true)
    const { fetch } = globalThis
    globalThis.fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (!isOther || !String(input).endsWith('/wallet/me')) return response
      return Response.json({ ...(await response.json()), address: unknownAddress })
    }
    try {
      const error = await failureOf(ask('eth_sendTransaction', { to }))
      expect([error.code, causeOf(error)]).toEqual([-32003, 'wallet_changed'])
      expect(service.proofs).toEqual([])
    } finally {
      globalThis.fetch = fetch
    }
  })

  test('names the confirmed wallet to the service', async () => {
    const { ask } = createProvider()
    const { fetch } = globalThis
    let body: unknown
    globalThis.fetch = async (input, init) => {
      if (String(input).endsWith('/sign/digest')) body = JSON.parse(String(init?.body))
      return fetch(input, init)
    }
    try {
      await ask('eth_sendTransaction', { to })
    } finally {
      globalThis.fetch = fetch
    }
    expect(body).toMatchObject({ wallet: service.wallet.address })
  })

  test('rejects with -32003 if onConfirm fails, because the user may have seen it', async () => {
    const onConfirm = () => Promise.reject(new Error('closed'))
    expect((await failureOf(createProvider({ onConfirm }).ask('eth_sendTransaction', { to }))).code).toBe(-32003)
  })

  test('rejects with 4100 if the permission is revoked while the user is asked', async () => {
    const { ask } = createProvider({
      async onConfirm() {
        await ask('wallet_revokePermissions', { eth_accounts: {} })
        return true
      },
    })
    await ask('eth_requestAccounts')
    expect((await failureOf(ask('eth_sendTransaction', { to }))).code).toBe(4100)
    expect(service.proofs).toEqual([])
  })
})

describe('with viem', () => {
  function createWallet(options?: Eip1193ProviderOptions) {
    return createWalletClient({ transport: custom(createProvider(options).provider) })
  }

  test('sends with a wallet client', async () => {
    const wallet = createWallet()
    const [account = unknownAddress] = await wallet.requestAddresses()
    const hash = await wallet.sendTransaction({ account, to, value: 3n, chain: null })
    expect(service.transactions).toMatchObject([{ hash, value: 3n }])
  })

  test('does not repeat a failed broadcast', async () => {
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'insufficient funds for transfer' })
    const send = createWallet().sendTransaction({ account: service.wallet.address, to, chain: null })
    await expect(send).rejects.toThrow(/insufficient funds|cannot pay/i)
    expect(service.requests.filter((request) => request === 'POST /sign/digest')).toHaveLength(1)
    expect(service.transactions).toEqual([])
  })

  test.each(['eth_sendTransaction', 'wallet_sendTransaction'] as const)(
    'does not repeat a failed broadcast in request(%s), whose transport retries',
    async (method) => {
      for (let time = 0; time < 4; time++) {
        service.failNext('eth_sendRawTransaction', { code: -32000, message: 'transaction underpriced' })
      }
      const onConfirm = vi.fn(() => true)
      const wallet = createWallet({ onConfirm })
      await expect(wallet.request({ method, params: [{ from: service.wallet.address, to }] })).rejects.toThrow()
      expect(service.requests.filter((request) => request === 'POST /sign/digest')).toHaveLength(1)
      expect(onConfirm).toHaveBeenCalledTimes(1)
    },
  )

  test.each([
    ['chain_not_allowed', 'sendTransaction'],
    ['internal', 'request'],
    ['attestation_invalid', 'request'],
  ] as const)('asks the user and the service once if the service rejects with %s', async (code, how) => {
    for (let time = 0; time < 4; time++) service.failNext('POST /sign/digest', { code })
    const onConfirm = vi.fn(() => true)
    const wallet = createWallet({ onConfirm })
    const from = service.wallet.address
    const send =
      how === 'request'
        ? wallet.request({ method: 'eth_sendTransaction', params: [{ from, to }] })
        : wallet.sendTransaction({ account: from, to, chain: null })
    await expect(send).rejects.toThrow()
    expect(service.requests.filter((request) => request === 'POST /sign/digest')).toHaveLength(1)
    expect(onConfirm).toHaveBeenCalledTimes(1)
  })
})
