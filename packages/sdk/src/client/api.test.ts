import { MAX_RETURN_TO_LENGTH, ServiceError } from '@countersign/protocol'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  apiBaseUrl,
  config,
  createProof,
  type FakeNetwork,
  html,
  installFakeNetwork,
  json,
  never,
  problem,
  user,
  wallet,
} from '../../test/client/network.ts'
import { withCode } from '../../test/client/withCode.ts'
import { REQUEST_TIMEOUT_MS } from './request.ts'
import { ServiceClient } from './ServiceClient.ts'

let network: FakeNetwork
let api: ServiceClient['api']

beforeEach(() => {
  network = installFakeNetwork()
  api = new ServiceClient(config).api
})

const digest = `0x${'22'.repeat(32)}` as const
const txMetadata = {
  chainId: 1,
  nonce: 0,
  to: wallet.address,
  value: '0',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '1',
  maxPriorityFeePerGas: '1',
} as const

describe('requests', () => {
  test.each([
    ['me', () => api.me(), 'GET', '/auth/me', undefined],
    ['getWallet', () => api.getWallet(), 'GET', '/wallet/me', undefined],
    ['provisionWallet', () => api.provisionWallet(), 'POST', '/wallet/provision', undefined],
    ['signDigest', () => api.signDigest({ digest, txMetadata }), 'POST', '/sign/digest', { digest, txMetadata }],
    ['logout', () => api.logout(), 'POST', '/auth/logout', undefined],
    ['listTransactions', () => api.listTransactions(), 'GET', '/wallet/transactions', undefined],
    [
      'listTransactions, the next page',
      () => api.listTransactions({ cursor: 'a b&c', limit: 5 }),
      'GET',
      '/wallet/transactions?cursor=a+b%26c&limit=5',
      undefined,
    ],
  ])('%s', async (_, ask, method, path, body) => {
    await ask()
    expect(network.calls).toEqual([
      { method, url: `${apiBaseUrl}${path}`, body, init: expect.objectContaining({ credentials: 'include' }) },
    ])
  })

  test('getProof encodes the slug, so that it cannot change the path', async () => {
    for (const slug of ['', '.', '..', 'a/../b?c', '\ud800', 'a\udfffb']) {
      await expect(api.getProof(slug)).rejects.toEqual(withCode('invalid_request'))
    }
    expect(network.calls).toHaveLength(0)
  })

  test('reads the global fetch at each call', async () => {
    vi.stubGlobal('fetch', async () => json({ ...user, name: null }))
    expect(await api.me()).toEqual({ ...user, name: null })
  })

  test('§2 strips trailing slashes from apiBaseUrl', async () => {
    const client = new ServiceClient({ ...config, apiBaseUrl: `${apiBaseUrl}///` })
    expect(client.config.apiBaseUrl).toBe(apiBaseUrl)
    expect(await client.api.me()).toEqual(user)
  })

  test('DESIGN §2: the login URL has the address to return to', () => {
    const client = new ServiceClient(config)
    expect(client.loginUrl()).toBe(`${apiBaseUrl}/auth`)
    expect(client.loginUrl({ returnTo: 'https://app.test/a?b=c&d#e' })).toBe(
      `${apiBaseUrl}/auth?return_to=https%3A%2F%2Fapp.test%2Fa%3Fb%3Dc%26d%23e`,
    )
  })

  test.each(['?b=', '#', '?b=c#'])('removes %s and the rest from a return address that is too long', (rest) => {
    const start = `https://app.test/a${rest}`
    const toPage = (length: number) => {
      const url = new ServiceClient(config).loginUrl({ returnTo: start.padEnd(length, 'x') })
      return new URL(url).searchParams.get('return_to')
    }
    expect(toPage(MAX_RETURN_TO_LENGTH)).toHaveLength(MAX_RETURN_TO_LENGTH)
    expect(toPage(MAX_RETURN_TO_LENGTH + 1)).toBe('https://app.test/a')
  })
})

describe('answers that are not errors', () => {
  test('§4 current-user lookup: 401 is null', async () => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    expect(await api.me()).toBeNull()
    network.routes['GET /auth/me'] = () => html(401)
    expect(await api.me()).toBeNull()
  })

  test('§4 wallet lookup: 404 is null, 401 is not', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    expect(await api.getWallet()).toBeNull()
    network.routes['GET /wallet/me'] = () => problem(401, 'not_authenticated')
    await expect(api.getWallet()).rejects.toEqual(withCode('not_authenticated', { status: 401 }))
  })

  test('logout resolves without a session', async () => {
    network.routes['POST /auth/logout'] = () => problem(401, 'not_authenticated')
    await expect(api.logout()).resolves.toBeUndefined()
  })

  test('drops unknown members', async () => {
    network.routes['GET /auth/me'] = () => json({ ...user, isAdmin: true })
    expect(await api.me()).toEqual(user)
  })
})

describe('failures', () => {
  test('keeps code, status, detail and retryable of the service’s error', async () => {
    network.routes['POST /sign/digest'] = () =>
      problem(503, 'entropy_unavailable', { title: 'No entropy', detail: 'the satellite is silent', retryable: true })
    const failure = await api.signDigest({ digest, txMetadata }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ServiceError)
    expect(failure).toMatchObject({
      code: 'entropy_unavailable',
      message: 'No entropy',
      status: 503,
      details: 'the satellite is silent',
      retryable: true,
      docsPath: '/errors#entropy_unavailable',
    })
  })

  test.each([
    ['a proxy answers HTML with 200', () => html(), 200],
    ['a proxy answers HTML with 502', () => html(502), 502],
    ['JSON is cut short', () => new Response('{"id":"1","ema'), 200],
    ['nothing', () => new Response(null, { status: 200 }), 200],
    ['204', () => new Response(null, { status: 204 }), 204],
    ['null', () => json(null), 200],
    ['a list', () => json([user]), 200],
    ['a string', () => json('user'), 200],
    ['a failure without a code', () => json({ error: 'no' }, 500), 500],
    ['an invalid code', () => problem(500, '<script>'), 500],
    ['a code that is not a string', () => json({ code: 5 }, 500), 500],
    ['a problem with 200', () => problem(200, 'internal'), 200],
  ])('rejects with a typed error for %s', async (_, answer, status) => {
    network.routes['GET /auth/me'] = answer
    await expect(api.me()).rejects.toEqual(withCode('response_invalid', { status }))
  })

  test('rejects with network_unreachable without a network', async () => {
    const cause = new TypeError('Failed to fetch')
    vi.stubGlobal('fetch', () => Promise.reject(cause))
    await expect(api.me()).rejects.toEqual(withCode('network_unreachable', { cause, status: undefined }))
  })

  test('rejects with network_unreachable if the connection breaks within the body', async () => {
    network.routes['GET /auth/me'] = () => {
      const body = new ReadableStream({ start: (controller) => controller.error(new TypeError('terminated')) })
      return new Response(body)
    }
    await expect(api.me()).rejects.toEqual(withCode('network_unreachable'))
  })

  test.each([
    ['the answer', never],
    ['the body', () => new Response(new ReadableStream())],
    ['a fetch that ignores its signal', () => new Promise<Response>(() => {})],
  ])('times out if %s never arrives', async (_, answer) => {
    vi.useFakeTimers()
    network.routes['GET /auth/me'] = answer
    const failure = expect(api.me()).rejects.toEqual(withCode('request_timeout'))
    await vi.advanceTimersByTimeAsync(REQUEST_TIMEOUT_MS)
    await failure
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an answered call leaves no timer', async () => {
    vi.useFakeTimers()
    await api.me()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('rejects a body that is not JSON before sending', async () => {
    const broken = { ...txMetadata, value: 1n } as never
    await expect(api.signDigest({ digest, txMetadata: broken })).rejects.toEqual(withCode('invalid_request'))
    expect(network.calls).toEqual([])
  })

  test('an abort ends a call without AbortSignal.any, and with a fetch that ignores its signal', async () => {
    const { any } = AbortSignal
    Object.defineProperty(AbortSignal, 'any', { value: undefined, configurable: true, writable: true })
    try {
      let given: AbortSignal | null | undefined
      network.routes['GET /proof/s'] = ({ init }) => {
        given = init.signal
        return new Promise<Response>(() => {})
      }
      const controller = new AbortController()
      const answer = api.getProof('s', { signal: controller.signal })
      const reason = new Error('enough')
      controller.abort(reason)
      await expect(answer).rejects.toBe(reason)
      expect(given?.reason).toBe(reason)
    } finally {
      Object.defineProperty(AbortSignal, 'any', { value: any, configurable: true, writable: true })
    }
  })

  test('an abort after the answer changes nothing', async () => {
    let given: AbortSignal | null | undefined
    network.routes['GET /proof/s'] = ({ init }) => {
      given = init.signal
      return json(createProof('s'))
    }
    const controller = new AbortController()
    await api.getProof('s', { signal: controller.signal })
    controller.abort()
    expect(given?.aborted).toBe(false)
  })

  test('an abort rejects with its own reason', async () => {
    network.routes['GET /proof/s'] = never
    const controller = new AbortController()
    const answer = api.getProof('s', { signal: controller.signal })
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(answer).rejects.toBe(reason)
    await expect(api.getProof('s', { signal: controller.signal })).rejects.toBe(reason)
    expect(network.calls).toHaveLength(1)
  })
})

describe('rejects fields of an unexpected shape', () => {
  const without = (body: object, name: string) =>
    Object.fromEntries(Object.entries(body).filter(([key]) => key !== name))

  test.each([
    ['id', { ...user, id: 5 }],
    ['no id', without(user, 'id')],
    ['empty id', { ...user, id: '' }],
    ['email', { ...user, email: null }],
    ['name', { ...user, name: {} }],
    ['no name', without(user, 'name')],
  ])('SessionUser: %s', async (_, body) => {
    network.routes['GET /auth/me'] = () => json(body)
    await expect(api.me()).rejects.toEqual(withCode('response_invalid'))
  })

  test.each([
    ['no address', without(wallet, 'address')],
    ['an address of 19 bytes', { ...wallet, address: `0x${'11'.repeat(19)}` }],
    ['an address without 0x', { ...wallet, address: '11'.repeat(20) }],
    ['no time', { ...wallet, createdAt: 'yesterday' }],
    ['no provenance', { ...wallet, provenance: null }],
    ['no hash', { ...wallet, provenance: without(wallet.provenance, 'entropyHash') }],
    ['a signature of another type', { ...wallet, provenance: { ...wallet.provenance, entropySig: 1 } }],
    ['no source', { ...wallet, provenance: { ...wallet.provenance, satelliteSource: '' } }],
  ])('WalletInfo: %s', async (_, body) => {
    network.routes['GET /wallet/me'] = () => json(body)
    network.routes['POST /wallet/provision'] = () => json(body)
    await expect(api.getWallet()).rejects.toEqual(withCode('response_invalid'))
    await expect(api.provisionWallet()).rejects.toEqual(withCode('response_invalid'))
  })

  const signature = `0x${'11'.repeat(65)}`
  test.each([
    ['64 bytes', { signature: `0x${'11'.repeat(64)}`, slug: 's' }],
    ['66 bytes', { signature: `0x${'11'.repeat(66)}`, slug: 's' }],
    ['no hex', { signature: `0x${'zz'.repeat(65)}`, slug: 's' }],
    ['no slug', { signature }],
    ['an empty slug', { signature, slug: '' }],
    ['null', { signature: null, slug: 's' }],
  ])('§8 rejects a signature that is %s', async (_, body) => {
    network.routes['POST /sign/digest'] = () => json(body)
    await expect(api.signDigest({ digest, txMetadata })).rejects.toEqual(withCode('response_invalid'))
  })

  const proof = createProof('s')
  const receipt = {
    version: 'countersign-attestation/1',
    transaction: {},
    signer: {},
    coordinator: {},
    entropy: {},
    verification: {},
  }

  test('ProofPayload: every status, and a receipt', async () => {
    for (const status of ['pending_pin', 'pending_onchain', 'complete', 'pin_failed', 'onchain_failed'] as const) {
      const complete = {
        ...createProof('s', status),
        ipfsCid: 'bafk',
        ipfsUrl: 'https://ipfs.test/bafk',
        onchainTxHash: `0x${'33'.repeat(32)}`,
        onchainBlockNumber: 0,
        receipt,
      }
      network.routes['GET /proof/s'] = () => json(complete)
      expect(await api.getProof('s')).toEqual(complete)
    }
  })

  test('passes through a receipt of an unknown version', async () => {
    for (const version of ['countersign-attestation/3', 'countersign-attestation/10']) {
      const newer = { ...createProof('s', 'pending_onchain'), receipt: { version, kind: 'off-chain', subject: {} } }
      network.routes['GET /proof/s'] = () => json(newer)
      expect(await api.getProof('s')).toEqual(newer)
    }
  })

  test('accepts receipts of version 2 and other kinds than transactions', async () => {
    const receipt = { version: 'countersign-attestation/2', subject: {}, signer: {}, coordinator: {}, entropy: {} }
    for (const kind of ['off-chain', 'authorization', 'a kind of later']) {
      const signed = { ...createProof('s', 'pending_onchain'), chainId: 0, kind, receipt: { ...receipt, kind } }
      network.routes['GET /proof/s'] = () => json(signed)
      expect(await api.getProof('s')).toEqual(signed)
    }
    network.routes['GET /proof/s'] = () => json(createProof('s'))
    expect(await api.getProof('s')).not.toHaveProperty('kind')
  })

  test.each([
    ['a kind that is a number', { ...proof, kind: 1 }],
    ['a kind that is null', { ...proof, kind: null }],
    ['an empty kind', { ...proof, kind: '' }],
    ['of another slug', { ...proof, slug: 't' }],
    ['a foreign status', { ...proof, status: 'done' }],
    ['a status of Object', { ...proof, status: 'constructor' }],
    ['no hash', { ...proof, txHash: '0x' }],
    ['a chain that is not a number', { ...proof, chainId: '1' }],
    ['a block below zero', { ...proof, onchainBlockNumber: -1 }],
    ['a block that is a string', { ...proof, onchainBlockNumber: '1' }],
    ['a link that is a script', { ...proof, ipfsUrl: 'javascript:alert(1)' }],
    ['a link without a scheme', { ...proof, ipfsUrl: '//ipfs.test/bafk' }],
    ['complete without a CID', { ...createProof('s', 'complete'), ipfsCid: null }],
    ['complete without an on-chain hash', { ...createProof('s', 'complete'), onchainTxHash: null }],
    ['complete without a block', { ...createProof('s', 'complete'), onchainBlockNumber: null }],
    ['an on-chain hash of 31 bytes', { ...proof, onchainTxHash: `0x${'11'.repeat(31)}` }],
    ['a CID that is a number', { ...proof, ipfsCid: 1 }],
    ['no address of the pin', without(proof, 'ipfsUrl')],
    ['a truthy string for a verdict', { ...proof, kmsQuoteVerified: 'true' }],
    ['no time', { ...proof, createdAt: '' }],
    ['no receipt at all', without(proof, 'receipt')],
    ['a receipt that is a list', { ...proof, receipt: [receipt] }],
  ])('ProofPayload: %s', async (_, body) => {
    network.routes['GET /proof/s'] = () => json(body)
    await expect(api.getProof('s')).rejects.toEqual(withCode('response_invalid'))
  })

  test('ProofPayload: rejects -0', async () => {
    const text = JSON.stringify({ ...proof, onchainBlockNumber: 0 })
    for (const [block, isTaken] of [
      ['0', true],
      ['-0', false],
    ]) {
      network.routes['GET /proof/s'] = () =>
        new Response(text.replace('"onchainBlockNumber":0', `"onchainBlockNumber":${block}`))
      const answer = api.getProof('s')
      if (isTaken) expect((await answer).onchainBlockNumber).toBe(0)
      else await expect(answer).rejects.toEqual(withCode('response_invalid'))
    }
  })

  test.each(['https://ipfs.test/bafk', 'http://localhost:8080/ipfs/bafk', 'ipfs://bafk', null])(
    'ProofPayload: accepts the link %j',
    async (ipfsUrl) => {
      network.routes['GET /proof/s'] = () => json({ ...proof, ipfsUrl })
      expect((await api.getProof('s')).ipfsUrl).toBe(ipfsUrl)
    },
  )

  const signed = { txHash: proof.txHash, chainId: 1, slug: 's', status: 'complete', createdAt: proof.createdAt }
  const item = { ...signed, to: proof.walletAddress, value: '0', data: '0x', nonce: 0 }
  const delegation = { ...signed, kind: 'authorization', implementation: proof.walletAddress }

  test.each([
    ['a transaction', item],
    ['an authorization', delegation],
    ['an off-chain signature', { ...signed, kind: 'off-chain' }],
    ['a transaction of a vault', { ...item, walletAddress: proof.walletAddress }],
    ['an address', { ...signed, kind: 'address' }],
    ['a kind that is not known', { ...signed, kind: 'later' }],
  ])('a page of transactions: %s', async (_, item) => {
    network.routes['GET /wallet/transactions'] = () => json({ transactions: [{ ...item, more: 1 }], nextCursor: 'c' })
    expect(await api.listTransactions()).toEqual({ transactions: [item], nextCursor: 'c' })
  })

  test.each([
    ['no list', { nextCursor: null }],
    ['no cursor', { transactions: [] }],
    ['one bad item', { transactions: [item, { ...item, status: 'done' }], nextCursor: null }],
    ['null for an item', { transactions: [null], nextCursor: null }],
    ['a hash too short', { transactions: [{ ...item, txHash: '0x11' }], nextCursor: null }],
    ['no recipient', { transactions: [{ ...item, to: undefined }], nextCursor: null }],
    ['no bytes for data', { transactions: [{ ...item, data: '0x1' }], nextCursor: null }],
    ['an amount in ether', { transactions: [{ ...item, value: '0.5' }], nextCursor: null }],
    ['an amount that is a number', { transactions: [{ ...item, value: 5 }], nextCursor: null }],
    ['a negative nonce', { transactions: [{ ...item, nonce: -1 }], nextCursor: null }],
    ['a vault without an address', { transactions: [{ ...item, walletAddress: null }], nextCursor: null }],
    ['an authorization for no code', { transactions: [{ ...delegation, implementation: null }], nextCursor: null }],
    ['a kind that is not a string', { transactions: [{ ...signed, kind: 1 }], nextCursor: null }],
  ])('a page of transactions: %s', async (_, body) => {
    network.routes['GET /wallet/transactions'] = () => json(body)
    await expect(api.listTransactions()).rejects.toEqual(withCode('response_invalid'))
  })
})
