import { type Hex, hashUnsignedTransaction, type TxMetadata, toHex } from '@countersign/protocol'
import { createPublicClient, http, parseEther, parseTransaction, recoverAddress, serializeTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createTestService } from './createTestService.ts'
import type { TestService } from './testService.ts'

const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
/** Hardhat's second development key. */
const stranger = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
const api = 'https://service.test'
const rpcUrl = 'https://rpc.test'

const txMetadata: TxMetadata = {
  chainId: 31337,
  nonce: 0,
  to,
  value: '1000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '3000000000',
  maxPriorityFeePerGas: '1000000000',
}

function digestOf(metadata: TxMetadata): Hex {
  return `0x${toHex(hashUnsignedTransaction(metadata))}`
}

type Problem = { code: string; status: number; retryable: boolean; type: string; detail?: string; requestId: string }

async function get(service: TestService, path: string, init: RequestInit = {}) {
  const response = await service.fetch(api + path, { credentials: 'include', ...init })
  return { response, status: response.status, body: await response.json() }
}

function post(service: TestService, path: string, body?: unknown, init: RequestInit = {}) {
  const content =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return get(service, path, { method: 'POST', ...content, ...init })
}

async function sign(service: TestService, metadata = txMetadata): Promise<{ signature: Hex; slug: string }> {
  const { status, body } = await post(service, '/sign/digest', { digest: digestOf(metadata), txMetadata: metadata })
  expect(status).toBe(200)
  return body
}

async function call(service: TestService, method: string, params: unknown[] = []) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
  const response = await service.fetch(rpcUrl, { method: 'POST', body })
  return (await response.json()) as { id: number; result?: unknown; error?: { code: number; message: string } }
}

async function signRaw(service: TestService, metadata = txMetadata): Promise<Hex> {
  const { signature } = await sign(service, metadata)
  return serialize(metadata, signature)
}

function serialize(metadata: TxMetadata, signature: Hex): Hex {
  const [r, s] = [signature.slice(0, 66) as Hex, `0x${signature.slice(66, 130)}` as Hex]
  return serializeTransaction(toViem(metadata), { r, s, yParity: signature.endsWith('1c') ? 1 : 0 })
}

function toViem(metadata: TxMetadata) {
  return {
    type: 'eip1559' as const,
    chainId: metadata.chainId,
    nonce: metadata.nonce,
    to: metadata.to,
    value: BigInt(metadata.value),
    data: metadata.data,
    gas: BigInt(metadata.gas),
    maxFeePerGas: BigInt(metadata.maxFeePerGas),
    maxPriorityFeePerGas: BigInt(metadata.maxPriorityFeePerGas),
  }
}

const realFetch = globalThis.fetch
afterEach(() => {
  globalThis.fetch = realFetch
})

describe('sessions and wallets', () => {
  test('the signed-in user has a name and a wallet', async () => {
    const service = createTestService()
    expect((await get(service, '/auth/me')).body).toEqual(service.user)
    expect((await get(service, '/wallet/me')).body).toEqual(service.wallet)
    expect(service.wallet.address).toBe('0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266')
  })

  test.each([
    'GET /auth/me',
    'GET /wallet/me',
    'POST /auth/logout',
    'POST /wallet/provision',
    'GET /wallet/transactions',
  ])('%s returns 401 not_authenticated as problem+json without a session', async (route) => {
    const service = createTestService({ signedIn: false })
    const [method = '', path = ''] = route.split(' ')
    const { response, status, body } = await get(service, path, { method })
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(status).toBe(401)
    expect(body).toMatchObject({ code: 'not_authenticated', status: 401, retryable: false })
    expect(body.type).toBe('https://service.test/docs/errors#not_authenticated')
    expect(body.requestId).toBe(response.headers.get('x-request-id'))
  })

  test('the app and the test can sign out; the test can sign in', async () => {
    const service = createTestService()
    expect((await post(service, '/auth/logout')).body).toEqual({ ok: true })
    expect((await post(service, '/auth/logout')).status).toBe(401)
    service.signIn()
    expect((await get(service, '/auth/me')).status).toBe(200)
    service.signOut()
    expect((await get(service, '/auth/me')).status).toBe(401)
  })

  test('without a wallet, returns 404 and no signature; provisioning always creates the same wallet', async () => {
    const service = createTestService({ provisioned: false })
    expect((await get(service, '/wallet/me')).body.code).toBe('wallet_not_found')
    const refused = await post(service, '/sign/digest', { digest: digestOf(txMetadata), txMetadata })
    expect([refused.status, refused.body.code]).toEqual([409, 'wallet_not_provisioned'])
    expect((await post(service, '/wallet/provision')).body).toEqual(service.wallet)
    expect((await post(service, '/wallet/provision', {})).body).toEqual(service.wallet)
    expect((await get(service, '/wallet/me')).body).toEqual(service.wallet)
  })
})

describe('POST /sign/digest', () => {
  test('makes a real signature of the wallet', async () => {
    const service = createTestService()
    const { signature, slug } = await sign(service)
    expect(signature).toMatch(/^0x[0-9a-f]{128}1[bc]$/)
    expect(slug).toMatch(/^[A-Za-z0-9_-]{21}[AQgw]$/)
    const signer = await recoverAddress({ hash: digestOf(txMetadata), signature })
    expect(signer.toLowerCase()).toBe(service.wallet.address)
  })

  test.each<[string, number, string, unknown]>([
    [
      'another transaction',
      422,
      'digest_mismatch',
      { digest: digestOf(txMetadata), txMetadata: { ...txMetadata, nonce: 1 } },
    ],
    ['a short digest', 400, 'invalid_digest', { digest: '0x12', txMetadata }],
    ['no metadata', 400, 'invalid_tx_metadata', { digest: digestOf(txMetadata) }],
    [
      'a number for an amount',
      400,
      'invalid_tx_metadata',
      { digest: digestOf(txMetadata), txMetadata: { ...txMetadata, value: 1 } },
    ],
    [
      'no recipient',
      422,
      'unsupported_transaction',
      { digest: digestOf(txMetadata), txMetadata: { ...txMetadata, to: null } },
    ],
    ['a foreign member', 400, 'invalid_request', { digest: digestOf(txMetadata), txMetadata, more: 1 }],
    ['a list', 400, 'invalid_request', []],
  ])('rejects %s with %i %s', async (_name, status, code, body) => {
    const service = createTestService()
    const answer = await post(service, '/sign/digest', body)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(service.proofs).toEqual([])
    service.signOut()
    // Without a session, the caller learns nothing about the body.
    expect((await post(service, '/sign/digest', body)).status).toBe(401)
  })

  test.each<[number, string, RequestInit]>([
    [415, 'unsupported_media_type', { body: '{}', headers: { 'content-type': 'text/plain' } }],
    [400, 'invalid_json', { body: '{', headers: { 'content-type': 'application/json' } }],
    [413, 'body_too_large', { body: ' '.repeat(131_073), headers: { 'content-type': 'application/json' } }],
  ])('rejects the body with %i %s', async (status, code, init) => {
    const answer = await post(createTestService(), '/sign/digest', undefined, init)
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })
})

describe('proofs', () => {
  test('a proof advances by explicit steps, with the specification’s nulls', async () => {
    const service = createTestService()
    const { slug } = await sign(service)
    const read = async () => (await get(service, `/proof/${slug}`, { credentials: 'omit' })).body
    expect(await read()).toMatchObject({
      status: 'pending_pin',
      ipfsCid: null,
      ipfsUrl: null,
      receipt: null,
      onchainTxHash: null,
    })
    expect(await read()).toMatchObject({ status: 'pending_pin' })
    expect(service.advanceProof(slug).status).toBe('pending_onchain')
    const pinned = await read()
    expect(pinned).toMatchObject({ status: 'pending_onchain', onchainBlockNumber: null, kmsQuoteVerified: true })
    expect(pinned.ipfsCid).toMatch(/^bafkrei[a-z2-7]{52}$/)
    expect(pinned.receipt).toMatchObject({ signer: { mode: 'mock' }, coordinator: {}, entropy: {} })
    expect(pinned.receipt.transaction).toMatchObject({ txHash: pinned.txHash, from: service.wallet.address })
    service.advanceProof(slug)
    expect(await read()).toMatchObject({ ...pinned, status: 'complete', onchainBlockNumber: 1 })
    expect(service.proofs).toEqual([await read()])
  })

  test('autoComplete: each read advances it', async () => {
    const service = createTestService({ autoComplete: true })
    const { slug } = await sign(service)
    const statuses = []
    for (let read = 0; read < 4; read++) statuses.push((await get(service, `/proof/${slug}`)).body.status)
    expect(statuses).toEqual(['pending_pin', 'pending_onchain', 'complete', 'complete'])
  })

  test('an unknown slug is 404 for the app and an error for the test', async () => {
    const service = createTestService()
    const { status, body } = await get(service, '/proof/AAAAAAAAAAAAAAAAAAAAAA')
    expect([status, body.code]).toEqual([404, 'proof_not_found'])
    expect(() => service.advanceProof('AAAAAAAAAAAAAAAAAAAAAA')).toThrow(/there is no proof/)
  })
})

describe('GET /wallet/transactions', () => {
  test('newest first, page by page', async () => {
    const service = createTestService()
    for (let nonce = 0; nonce < 5; nonce++) await sign(service, { ...txMetadata, nonce })
    const slugs = service.proofs.map(({ slug }) => slug).toReversed()
    const seen: string[] = []
    const sizes: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await get(service, `/wallet/transactions?limit=2${query}`)
      sizes.push(body.transactions.length)
      for (const { slug } of body.transactions) seen.push(slug)
      cursor = body.nextCursor
    }
    expect(sizes).toEqual([2, 2, 1])
    expect(seen).toEqual(slugs)
    const all = await get(service, '/wallet/transactions')
    expect(all.body).toMatchObject({
      nextCursor: null,
      transactions: [
        { slug: slugs[0], status: 'pending_pin', nonce: 4, to: txMetadata.to.toLowerCase(), value: txMetadata.value },
        {},
        {},
        {},
        {},
      ],
    })
  })

  test.each([
    'limit=0',
    'limit=101',
    'limit=x',
    'limit=1&limit=2',
    'cursor=',
    'cursor=AAAAAAAAAAA',
    'cursor=..........!',
    'cursor=__________8',
  ])('rejects %s', async (query) => {
    const { status, body } = await get(createTestService(), `/wallet/transactions?${query}`)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
  })
})

describe('routes', () => {
  test('an unknown path is 404, another method 405 with Allow', async () => {
    const service = createTestService()
    expect((await get(service, '/wallets')).body.code).toBe('not_found')
    const { response, status, body } = await get(service, '/sign/digest')
    expect([status, body.code, response.headers.get('allow')]).toEqual([405, 'method_not_allowed', 'POST'])
  })
})

const legacy = await stranger.signTransaction({
  to,
  gasPrice: 1n,
  gas: 21_000n,
  nonce: 0,
  chainId: 31337,
  type: 'legacy',
})

describe('the chain', () => {
  test('mines a signed transaction immediately and transfers its value', async () => {
    const service = createTestService({ balance: parseEther('1') })
    const raw = await signRaw(service)
    const { result: hash } = await call(service, 'eth_sendRawTransaction', [raw])
    expect(service.transactions).toMatchObject([
      { hash, from: service.wallet.address, to, nonce: 0, value: 1000n, blockNumber: 1n },
    ])
    expect(service.proofs[0]?.txHash).toBe(hash)
    expect((await call(service, 'eth_getTransactionCount', [service.wallet.address, 'pending'])).result).toBe('0x1')
    expect((await call(service, 'eth_getBalance', [to, 'latest'])).result).toBe('0x3e8')
    expect((await call(service, 'eth_blockNumber')).result).toBe('0x1')
  })

  test('answers viem’s requests', async () => {
    const service = createTestService()
    service.install()
    const client = createPublicClient({ transport: http(rpcUrl, { batch: true }) })
    const raw = await signRaw(service)
    const hash = await client.sendRawTransaction({ serializedTransaction: raw })
    const [receipt, transaction, block, chainId, fees, history, gas, price, answer] = await Promise.all([
      client.waitForTransactionReceipt({ hash }),
      client.getTransaction({ hash }),
      client.getBlock({ includeTransactions: true }),
      client.getChainId(),
      client.estimateFeesPerGas(),
      client.getFeeHistory({ blockCount: 4, rewardPercentiles: [10, 90] }),
      client.estimateGas({ account: service.wallet.address, to, data: '0x0001' }),
      client.getGasPrice(),
      client.call({ to }),
    ])
    expect(receipt).toMatchObject({ status: 'success', blockNumber: 1n, gasUsed: 21_000n, transactionHash: hash })
    expect(transaction).toMatchObject({
      type: 'eip1559',
      hash,
      nonce: 0,
      value: 1000n,
      blockNumber: 1n,
      chainId: 31337,
    })
    expect(transaction.r).toBe(parseTransaction(raw as `0x02${string}`).r)
    expect(block.transactions).toMatchObject([{ hash }])
    expect(chainId).toBe(31337)
    expect(fees).toEqual({ maxFeePerGas: 2_200_000_000n, maxPriorityFeePerGas: 1_000_000_000n })
    expect(history).toMatchObject({
      oldestBlock: 0n,
      reward: [
        [10n ** 9n, 10n ** 9n],
        [10n ** 9n, 10n ** 9n],
      ],
    })
    expect(history.baseFeePerGas).toHaveLength(3)
    expect(gas).toBe(21_020n)
    expect(price).toBe(2_000_000_000n)
    expect(answer.data).toBeUndefined()
    expect(await client.getBlock({ blockNumber: 0n })).toMatchObject({ number: 0n, transactions: [] })
    await expect(client.getBlock({ blockNumber: 9n })).rejects.toThrow(/not be found/)
    await expect(client.getTransaction({ hash: `0x${'ab'.repeat(32)}` })).rejects.toThrow(/not be found/)
  })

  test.each<[string, Partial<TxMetadata>, RegExp]>([
    ['another chain', { chainId: 1 }, /invalid chain id/],
    ['a nonce from the future', { nonce: 1 }, /nonce too high: next nonce 0, tx nonce 1/],
    [
      'a fee below the base fee',
      { maxFeePerGas: '999999999', maxPriorityFeePerGas: '0' },
      /max fee per gas less than block base fee/,
    ],
    ['21000 gas for a call with data', { data: '0x00' }, /intrinsic gas too low/],
    ['more than the wallet holds', { value: parseEther('10000').toString() }, /insufficient funds/],
  ])('rejects %s', async (_name, change, message) => {
    const service = createTestService()
    const { error } = await call(service, 'eth_sendRawTransaction', [
      await signRaw(service, { ...txMetadata, ...change }),
    ])
    expect(error).toMatchObject({ code: -32000, message: expect.stringMatching(message) })
    expect(service.transactions).toEqual([])
  })

  test('rejects a used nonce, and the same bytes again', async () => {
    const service = createTestService()
    const raw = await signRaw(service)
    await call(service, 'eth_sendRawTransaction', [raw])
    expect((await call(service, 'eth_sendRawTransaction', [raw])).error?.message).toBe('already known')
    const replaced = await signRaw(service, { ...txMetadata, value: '2' })
    expect((await call(service, 'eth_sendRawTransaction', [replaced])).error?.message).toMatch(/nonce too low/)
  })

  test.each<[string, unknown]>([
    ['garbage', '0x02c0ff'],
    ['an unsigned transaction', serializeTransaction(toViem(txMetadata))],
    ['a legacy transaction', legacy],
    ['no hex', 'raw'],
    ['nothing', undefined],
  ])('rejects %s', async (_name, raw) => {
    const { error } = await call(createTestService(), 'eth_sendRawTransaction', [raw])
    expect([-32000, -32602]).toContain(error?.code)
  })

  test('a test answers for its contracts', async () => {
    const service = createTestService({
      rpc: {
        eth_call: ([request]) => (request as { data: Hex }).data,
        eth_estimateGas: () => {
          throw { code: 3, message: 'execution reverted', data: '0x08c379a0' }
        },
      },
    })
    expect((await call(service, 'eth_call', [{ data: '0x1234' }])).result).toBe('0x1234')
    const reverted = { code: 3, message: 'execution reverted', data: '0x08c379a0' }
    expect((await call(service, 'eth_estimateGas', [{}])).error).toEqual(reverted)
  })
})

describe('failNext', () => {
  test('only the next request fails', async () => {
    const service = createTestService()
    service.failNext('GET /auth/me', { code: 'rate_limited', retryAfterS: 3, detail: 'slow down' })
    service.failNext('GET /auth/me', 'network')
    const { response, status, body } = await get(service, '/auth/me')
    expect([status, response.headers.get('retry-after')]).toEqual([429, '3'])
    expect(body as Problem).toMatchObject({ code: 'rate_limited', detail: 'slow down', retryable: true })
    await expect(get(service, '/auth/me')).rejects.toThrow(TypeError)
    expect((await get(service, '/auth/me')).status).toBe(200)
  })

  test('a JSON-RPC method fails with an RPC error', async () => {
    const service = createTestService()
    service.failNext('eth_chainId', { code: -32005, message: 'limit exceeded' })
    expect((await call(service, 'eth_chainId')).error).toEqual({ code: -32005, message: 'limit exceeded' })
    service.failNext('eth_chainId', 'network')
    await expect(call(service, 'eth_chainId')).rejects.toThrow(TypeError)
    expect((await call(service, 'eth_chainId')).result).toBe('0x7a69')
  })

  test('rejects an unknown name or code immediately', () => {
    const service = createTestService()
    // @ts-expect-error no such route
    expect(() => service.failNext('GET /me', { code: 'internal' })).toThrow(/no such route/)
    // @ts-expect-error no such code
    expect(() => service.failNext('GET /auth/me', { code: 'oops' })).toThrow(/no such code/)
    // @ts-expect-error a route has problems
    expect(() => service.failNext('GET /auth/me', { code: -32000, message: '' })).toThrow(/a problem/)
    // @ts-expect-error a method has RPC errors
    expect(() => service.failNext('eth_chainId', { code: 'internal' })).toThrow(/an RPC error/)
  })
})

describe('fetch and install', () => {
  test('answers its two origins and passes other requests on, until uninstalled', async () => {
    const other = vi.fn(async () => new Response('other'))
    globalThis.fetch = other
    const service = createTestService()
    const uninstall = service.install()
    expect((await fetch(`${api}/auth/me`, { credentials: 'include' })).status).toBe(200)
    expect((await fetch(new Request(`${api}/auth/me`, { credentials: 'include' }))).status).toBe(200)
    for (const url of [
      'https://service.test.example',
      'http://service.test',
      new URL('https://example.test'),
      '/relative',
    ]) {
      expect(await (await fetch(url)).text()).toBe('other')
    }
    expect(other).toHaveBeenCalledTimes(4)
    uninstall()
    expect(globalThis.fetch).toBe(other)
  })

  test('fetch rejects another origin and an aborted request', async () => {
    const service = createTestService()
    await expect(service.fetch('https://example.test')).rejects.toThrow(/not an origin of this test service/)
    await expect(service.fetch(api, { signal: AbortSignal.abort() })).rejects.toThrow(/aborted/)
    const controller = new AbortController()
    const late = service.fetch(`${api}/auth/me`, { signal: controller.signal })
    controller.abort()
    await expect(late).rejects.toThrow(/aborted/)
  })
})
