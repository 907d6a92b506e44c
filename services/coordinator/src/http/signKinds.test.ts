import {
  type Hex,
  hashAuthorization,
  hashMessage,
  hashTypedData,
  MAX_OFF_CHAIN_BYTES,
  type TransactionPage,
  toHex,
} from '@countersign/protocol'
import { describe, expect, test, vi } from 'vitest'
import { createTestApp, signed } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const message = { message: '0x68656c6c6f' } as const
const typedData = {
  domain: { name: 'Permit', chainId: 1 },
  types: { Permit: [{ name: 'spender', type: 'address' }] },
  primaryType: 'Permit',
  message: { spender: `0x${'Ab'.repeat(20)}` },
}
const authorization = { chainId: 31337, address: `0x${'Ab'.repeat(20)}` as const, nonce: 3 }
const calls = {
  '/sign/message': message,
  '/sign/typed-data': typedData,
  '/sign/authorization': authorization,
} as const
type Path = keyof typeof calls
const paths = Object.keys(calls) as Path[]
const offChain = ['/sign/message', '/sign/typed-data'] as const

async function setUp(changes: Parameters<typeof createTestApp>[0] = {}) {
  const app = createTestApp(changes)
  const user = app.browser()
  await user.signIn()
  return { ...app, user }
}

const codeOf = async (response: Response) => [response.status, ((await response.json()) as { code?: string }).code]

describe.each(paths)('POST %s', (path) => {
  test('signs the sent content with its digest', async () => {
    const { user, signings } = await setUp()
    const response = await user.post(path, calls[path])
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const body = (await response.json()) as Record<string, unknown>
    expect(body).toMatchObject(signed)
    expect('opening' in body).toBe(path !== '/sign/authorization')
    const digests = {
      '/sign/message': hashMessage(message.message),
      '/sign/typed-data': hashTypedData(typedData),
      '/sign/authorization': hashAuthorization(authorization),
    }
    expect(signings[0]?.content.digest).toBe(`0x${toHex(digests[path])}`)
  })

  test('returns not_authenticated without a session for any body', async () => {
    const { request } = await setUp()
    for (const body of [JSON.stringify(calls[path]), '{', '']) {
      const headers = { origin: 'https://app.example', 'content-type': 'application/json' }
      expect(await codeOf(await request(path, { method: 'POST', headers, body }))).toEqual([401, 'not_authenticated'])
    }
  })

  test('returns wallet_not_provisioned without a wallet', async () => {
    const app = createTestApp()
    app.entropy.isDown = true
    const user = app.browser()
    await user.signIn()
    expect(await codeOf(await user.post(path, calls[path]))).toEqual([409, 'wallet_not_provisioned'])
  })

  test('shares the user’s rate limit with transactions', async () => {
    const { user } = await setUp({
      config: { rateLimits: { sign: { count: 2, seconds: 60 }, provision: 'off', auth: 'off', proof: 'off' } },
    })
    expect((await user.post(path, calls[path])).status).toBe(200)
    expect((await user.post('/sign/message', message)).status).toBe(200)
    expect(await codeOf(await user.post(path, calls[path]))).toEqual([429, 'rate_limited'])
  })

  test('returns origin_not_allowed from another origin', async () => {
    const { user, signings } = await setUp()
    const response = await user.post(path, calls[path], { origin: 'https://foreign.example' })
    expect(await codeOf(response)).toEqual([403, 'origin_not_allowed'])
    expect(signings).toEqual([])
  })

  test.each([null, [], 'text', 5, {}])('rejects the body %j and signs nothing', async (body) => {
    const { user, signings } = await setUp()
    const response = await user.post(path, body)
    expect(response.status).toBe(400)
    expect(signings).toEqual([])
  })

  test('rejects an additional member', async () => {
    const { user } = await setUp()
    expect((await user.post(path, { ...calls[path], more: 1 })).status).toBe(400)
  })
})

describe('rejections and their codes', () => {
  const deep = (levels: number) => {
    const types: Record<string, { name: string; type: string }[]> = {}
    for (let level = 0; level < levels; level += 1) types[`T${level}`] = [{ name: 'a', type: `T${level + 1}` }]
    types[`T${levels}`] = [{ name: 'a', type: 'bool' }]
    let value: unknown = { a: true }
    for (let level = 0; level < levels; level += 1) value = { a: value }
    return { ...typedData, types, primaryType: 'T0', message: value }
  }
  const withType = (type: string, value: unknown) => ({
    ...typedData,
    types: { Permit: [{ name: 'spender', type }] },
    message: { spender: value },
  })
  test.each<[string, Path, unknown, number, string]>([
    ['a message without 0x', '/sign/message', { message: '68656c6c6f' }, 400, 'invalid_message'],
    ['half a byte', '/sign/message', { message: '0x6' }, 400, 'invalid_message'],
    ['no hex', '/sign/message', { message: '0xzz' }, 400, 'invalid_message'],
    ['a message that is a number', '/sign/message', { message: 5 }, 400, 'invalid_message'],
    ['no message', '/sign/message', {}, 400, 'invalid_request'],
    [
      'a large message',
      '/sign/message',
      { message: `0x${'00'.repeat(MAX_OFF_CHAIN_BYTES / 2)}` },
      413,
      'message_too_large',
    ],
    [
      'large typed data',
      '/sign/typed-data',
      withType('string', 'x'.repeat(MAX_OFF_CHAIN_BYTES)),
      413,
      'message_too_large',
    ],
    ['an unknown type', '/sign/typed-data', withType('Nothing', {}), 400, 'invalid_typed_data'],
    ['a recursive type', '/sign/typed-data', withType('Permit', {}), 400, 'invalid_typed_data'],
    ['a bare uint', '/sign/typed-data', withType('uint', 1), 400, 'invalid_typed_data'],
    ['a number out of range', '/sign/typed-data', withType('uint8', 256), 400, 'invalid_typed_data'],
    ['a number that JSON cannot hold', '/sign/typed-data', withType('uint256', 2 ** 60), 400, 'invalid_typed_data'],
    ['a member missing', '/sign/typed-data', { ...typedData, message: {} }, 400, 'invalid_typed_data'],
    [
      'a member of the message more',
      '/sign/typed-data',
      { ...typedData, message: { ...typedData.message, more: 1 } },
      400,
      'invalid_typed_data',
    ],
    ['types nested too deep', '/sign/typed-data', deep(17), 400, 'invalid_typed_data'],
    [
      'EIP712Domain as the primary type',
      '/sign/typed-data',
      { ...typedData, primaryType: 'EIP712Domain' },
      400,
      'invalid_typed_data',
    ],
    ['half a surrogate pair', '/sign/typed-data', withType('string', '\ud800'), 400, 'invalid_typed_data'],
    [
      'an authorization for every chain',
      '/sign/authorization',
      { ...authorization, chainId: 0 },
      422,
      'authorization_not_allowed',
    ],
    [
      'an authorization for half a chain',
      '/sign/authorization',
      { ...authorization, chainId: 1.5 },
      400,
      'invalid_request',
    ],
    ['an address that is short', '/sign/authorization', { ...authorization, address: '0x00' }, 400, 'invalid_request'],
    ['a nonce below 0', '/sign/authorization', { ...authorization, nonce: -1 }, 400, 'invalid_request'],
  ])('%s', async (_, path, body, status, code) => {
    const { user, signings, log } = await setUp()
    expect(await codeOf(await user.post(path, body))).toEqual([status, code])
    expect(signings).toEqual([])
    // The log contains nothing of the body.
    expect(JSON.stringify(log.lines)).not.toContain('Permit')
  })

  test('an authorization for a chain that is not allowed', async () => {
    const { user } = await setUp({ config: { allowedChainIds: [1] } })
    expect(await codeOf(await user.post('/sign/authorization', authorization))).toEqual([422, 'chain_not_allowed'])
  })

  test('accepts typed data with the longest list that fits', async () => {
    const { user } = await setUp()
    const body = withType('uint8[]', Array(16_000).fill(1))
    expect((await user.post('/sign/typed-data', body)).status).toBe(200)
  })

  test('returns invalid_json for duplicate members, because the user may have seen the first', async () => {
    const { user } = await setUp()
    const headers = { origin: 'https://app.example', 'content-type': 'application/json' }
    const body = '{"message":"0x11","message":"0x22"}'
    const response = await user.send('/sign/message', { method: 'POST', headers, body })
    expect(await codeOf(response)).toEqual([400, 'invalid_json'])
  })
})

describe('keeps the codes of the enclave’s rejections', () => {
  test.each([
    ['authorization_not_allowed', '/sign/authorization', 422],
    ['message_too_large', '/sign/message', 413],
    ['invalid_typed_data', '/sign/typed-data', 400],
  ] as const)('%s', async (code, path, status) => {
    const fails = () => Promise.reject(new CoordinatorError(code, 'x'))
    const { user } = await setUp({ deps: { sign: fails } })
    expect(await codeOf(await user.post(path, calls[path]))).toEqual([status, code])
  })
})

describe('public data', () => {
  test('returns the earlier signature for a repeated authorization', async () => {
    const { user, store, signings } = await setUp()
    const [wallet] = store.rows.wallets.values()
    const digest: Hex = `0x${toHex(hashAuthorization(authorization))}`
    const earlier = { signature: `0x${'77'.repeat(65)}` as const, slug: 'AAAAAAAAAAAAAAAAAAAAAA' }
    store.rows.signed.set(`${wallet?.id}/${digest}`, { walletId: wallet?.id ?? '', digest, ...earlier })
    expect(await (await user.post('/sign/authorization', authorization)).json()).toEqual(earlier)
    expect(signings).toEqual([])
  })

  test.each(offChain)('%s looks up no digest in the store', async (path) => {
    const { user, store } = await setUp()
    const asked: unknown[] = []
    const { findSigners } = store
    store.findSigners = (parameters) => {
      asked.push(...parameters.queries.map(({ digest }) => digest))
      return findSigners(parameters)
    }
    await user.post(path, calls[path])
    expect(asked).toEqual([undefined])
  })

  test('proofs and history name the kind, except for transactions', async () => {
    const { user, request, store } = await setUp()
    const [wallet] = store.rows.wallets.values()
    const address = `0x${'33'.repeat(20)}` as const
    const summaries = {
      transaction: { to: address, value: '5', data: '0x', nonce: 7 },
      authorization: { kind: 'authorization', implementation: address },
      'off-chain': { kind: 'off-chain' },
    } as const
    const kinds = ['transaction', 'authorization', 'off-chain'] as const
    for (const [index, kind] of kinds.entries()) {
      const slug = `${'A'.repeat(20)}${index}A`
      const walletId = wallet?.id ?? ''
      store.rows.signed.set(slug, { walletId, digest: null, signature: null, slug })
      store.rows.proofs.set(slug, {
        slug,
        kind,
        txHash: `0x${'11'.repeat(32)}`,
        chainId: kind === 'off-chain' ? 0 : 1,
        walletAddress: `0x${'22'.repeat(20)}`,
        status: 'pending_pin',
        ipfsCid: null,
        onchainTxHash: null,
        onchainBlockNumber: null,
        kmsQuoteVerified: true,
        receipt: null,
        createdAt: 1_750_000_000_000,
        isFinal: false,
      })
      store.rows.summaries.set(slug, summaries[kind])
      const proof = (await (await request(`/proof/${slug}`)).json()) as Record<string, unknown>
      expect([kind, 'kind' in proof, proof.kind]).toEqual([
        kind,
        kind !== 'transaction',
        kind === 'transaction' ? undefined : kind,
      ])
    }
    const { transactions } = (await (await user.get('/wallet/transactions')).json()) as TransactionPage
    const shared = ['chainId', 'createdAt', 'slug', 'status', 'txHash']
    expect(transactions).toMatchObject(kinds.map((kind) => summaries[kind]).toReversed())
    expect(transactions.map((transaction) => Object.keys(transaction).sort())).toEqual(
      kinds.map((kind) => [...shared, ...Object.keys(summaries[kind])].sort()).toReversed(),
    )
  })
})

describe('POST /sign/typed-data', () => {
  const text = 'hashed for no caller'
  const body = {
    domain: { name: 'Post' },
    types: { Post: [{ name: 'text', type: 'string' }] },
    primaryType: 'Post',
    message: { text },
  }

  /** Hashing a string starts with its bytes. */
  async function isHashed(send: () => Promise<Response>): Promise<[boolean, number]> {
    const encode = vi.spyOn(TextEncoder.prototype, 'encode')
    try {
      const { status } = await send()
      return [encode.mock.calls.some(([encoded]) => encoded === text), status]
    } finally {
      encode.mockRestore()
    }
  }

  test('hashes nothing for callers without a session or above their limit', async () => {
    const { user, request } = await setUp({
      config: { rateLimits: { sign: { count: 1, seconds: 60 }, provision: 'off', auth: 'off', proof: 'off' } },
    })
    const headers = { origin: 'https://app.example', 'content-type': 'application/json' }
    const asStranger = () =>
      Promise.resolve(request('/sign/typed-data', { method: 'POST', headers, body: JSON.stringify(body) }))
    expect(await isHashed(asStranger)).toEqual([false, 401])
    expect(await isHashed(() => user.post('/sign/typed-data', body))).toEqual([true, 200])
    expect(await isHashed(() => user.post('/sign/typed-data', body))).toEqual([false, 429])
  })

  test('returns chain_not_allowed for a chain that is not allowed, in every spelling; signs without a chain', async () => {
    const { user, signings } = await setUp({ config: { allowedChainIds: [31337] } })
    for (const chainId of [
      1,
      '1',
      '0x1',
      '0x01',
      '115792089237316195423570985008687907853269984665640564039457584007913129639935',
    ]) {
      const foreign = { ...body, domain: { name: 'Post', chainId } }
      expect(await codeOf(await user.post('/sign/typed-data', foreign))).toEqual([422, 'chain_not_allowed'])
    }
    expect(signings).toEqual([])
    for (const domain of [{ name: 'Post' }, { chainId: 31337 }, { chainId: '0x7a69' }]) {
      expect((await user.post('/sign/typed-data', { ...body, domain })).status).toBe(200)
    }
  })
})
