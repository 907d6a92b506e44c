import type { Hex, SignRequest, TxMetadata } from '@countersign/protocol'
import {
  getAddress,
  HttpRequestError,
  keccak256,
  parseEther,
  parseGwei,
  parseTransaction,
  recoverTransactionAddress,
  serializeTransaction,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  chainId,
  config,
  createGate,
  type FakeNetwork,
  html,
  installFakeNetwork,
  json,
  never,
  problem,
  wallet,
} from '../../test/client/network.ts'
import { withCode } from '../../test/client/withCode.ts'
import { parseSignRequest } from './parseSignRequest.ts'
import { RPC_TIMEOUT_MS } from './rpc.ts'
import { ServiceClient } from './ServiceClient.ts'
import { NONCE_RETRIES, NONCE_RETRY_MS, signAndSend } from './signAndSend.ts'
import { signTransaction } from './signTransaction.ts'

let network: FakeNetwork
let client: ServiceClient

beforeEach(() => {
  network = installFakeNetwork()
  client = new ServiceClient(config)
})

const to = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const signings = () => network.paths().filter((path) => path === 'POST /sign/digest').length
const broadcasts = () => network.rpcMethods().filter((method) => method === 'eth_sendRawTransaction').length
const sent = () => network.mempool.map((raw) => parseTransaction(raw))

describe('§4 signAndSend', () => {
  test('the steps in their order, and the transaction that they make', async () => {
    const result = await client.signAndSend({ to, value: '0.5' })
    const [raw] = network.mempool as [`0x02${string}`]
    expect(result).toEqual({ txHash: keccak256(raw), attestationSlug: 'slug-1' })
    expect(parseTransaction(raw)).toMatchObject({
      type: 'eip1559',
      chainId,
      nonce: 7,
      to,
      value: parseEther('0.5'),
      gas: 21000n,
      maxFeePerGas: parseGwei('13'),
      maxPriorityFeePerGas: parseGwei('1'),
    })
    expect((await recoverTransactionAddress({ serializedTransaction: raw })).toLowerCase()).toBe(wallet.address)

    const { r: _r, s: _s, v: _v, yParity: _y, ...unsigned } = parseTransaction(raw)
    expect(network.calls.find(({ url }) => url.endsWith('/sign/digest'))?.body).toEqual({
      digest: keccak256(serializeTransaction(unsigned)),
      txMetadata: {
        chainId,
        nonce: 7,
        to,
        value: '500000000000000000',
        data: '0x',
        gas: '21000',
        maxFeePerGas: '13000000000',
        maxPriorityFeePerGas: '1000000000',
      },
    })

    const order = network.calls.map(({ url, body }) => (body as { method?: string })?.method ?? new URL(url).pathname)
    expect(order[0]).toBe('/wallet/me')
    expect(order.slice(1, 5).toSorted()).toEqual([
      'eth_chainId',
      'eth_getBlockByNumber',
      'eth_getTransactionCount',
      'eth_maxPriorityFeePerGas',
    ])
    expect(order.slice(5)).toEqual(['/wallet/me', '/sign/digest', 'eth_sendRawTransaction'])
  })

  test('nonce and fees are read in parallel, and the nonce counts pending transactions', async () => {
    const gate = createGate()
    const asked: unknown[] = []
    for (const method of ['eth_getTransactionCount', 'eth_getBlockByNumber', 'eth_chainId']) {
      const answer = network.rpc[method]
      network.rpc[method] = async (params, call) => {
        asked.push(method, ...(method === 'eth_getTransactionCount' ? params : []))
        await gate.opened
        return answer?.(params, call)
      }
    }
    const result = client.signAndSend({ to })
    await expect.poll(() => asked).toHaveLength(5)
    expect(asked).toEqual(
      expect.arrayContaining([
        'eth_getBlockByNumber',
        'eth_chainId',
        'eth_getTransactionCount',
        wallet.address,
        'pending',
      ]),
    )
    gate.open()
    await result
  })

  test('§2 SignRequest: a bigint is wei, a string is ether, data and gas go through', async () => {
    await client.signAndSend({ to, value: 5n, data: '0xabcd', gas: 90_000n })
    await client.signAndSend({ to, value: '1.000000000000000001' })
    await client.signAndSend({ to, value: '.5' })
    await client.signAndSend({ to, value: '3.' })
    expect(sent()).toMatchObject([
      { value: 5n, data: '0xabcd', gas: 90_000n },
      { value: 1_000_000_000_000_000_001n },
      { value: parseEther('0.5') },
      { value: parseEther('3') },
    ])
  })

  test('§8 defaults: value 0, data 0x, gas 21000', async () => {
    await client.signAndSend({ to, value: undefined, data: undefined, gas: undefined })
    expect(sent()[0]).toMatchObject({ gas: 21000n })
    expect(sent()[0]?.value ?? 0n).toBe(0n)
    expect(sent()[0]?.data ?? '0x').toBe('0x')
  })

  test('a checksummed address is taken, and one that fails its checksum is not', async () => {
    await client.signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' })
    await expect(client.signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79c8' })).rejects.toEqual(
      withCode('invalid_request'),
    )
  })

  test('an address all in capitals, which has no checksum, is taken', async () => {
    await client.signAndSend({ to: '0x70997970C51812DC3A010C7D01B50E0D17DC79C8' })
    expect(sent()[0]?.to?.toLowerCase()).toBe('0x70997970c51812dc3a010c7d01b50e0d17dc79c8')
    await expect(client.signAndSend({ to: '0X70997970C51812DC3A010C7D01B50E0D17DC79C8' as Hex })).rejects.toEqual(
      withCode('invalid_request'),
    )
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no recipient', {}],
    [
      'a member that is computed at each read',
      {
        get to() {
          return to
        },
      },
    ],
    [
      'an instance of a class',
      new (class {
        to = to
      })(),
    ],
    ['a null recipient', { to: null }],
    ['a recipient too short', { to: '0x1234' }],
    ['a name', { to: 'vitalik.eth' }],
    ['a negative value', { to, value: -1n }],
    ['a negative string', { to, value: '-1' }],
    ['a value beyond 256 bits', { to, value: 1n << 256n }],
    ['a number', { to, value: 1 }],
    ['an empty string', { to, value: '' }],
    ['a point', { to, value: '.' }],
    ['a word', { to, value: 'all' }],
    ['a comma', { to, value: '0,5' }],
    ['an exponent', { to, value: '1e18' }],
    ['hex', { to, value: '0x10' }],
    ['white space', { to, value: ' 1' }],
    ['two points', { to, value: '1.2.3' }],
    ['19 decimals', { to, value: '0.0000000000000000001' }],
    ['more digits than there is ether', { to, value: '9'.repeat(70) }],
    ['a megabyte of digits', { to, value: '9'.repeat(1_000_000) }],
    ['data without 0x', { to, data: 'abcd' }],
    ['half a byte of data', { to, data: '0xabc' }],
    ['data that is no hex', { to, data: '0xzz' }],
    ['gas as a number', { to, gas: 21000 }],
    ['no gas', { to, gas: 0n }],
    ['negative gas', { to, gas: -1n }],
    ['gas beyond 64 bits', { to, gas: 1n << 64n }],
  ])('%s: a typed error, and nothing is sent', async (_, request) => {
    await expect(client.signAndSend(request as SignRequest)).rejects.toEqual(withCode('invalid_request'))
    expect(network.calls).toEqual([])
  })

  test('DESIGN §2: without a wallet it rejects with Error("wallet_not_ready") and asks for nothing more', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    expect(failure).toMatchObject({ message: 'wallet_not_ready', code: 'wallet_not_ready' })
    expect(network.paths()).toEqual(['GET /wallet/me'])
    expect(network.rpcMethods()).toEqual([])
  })

  test('a refusal of the service goes through unchanged, and nothing is broadcast', async () => {
    network.routes['POST /sign/digest'] = () => problem(422, 'chain_not_allowed', { detail: 'chain 31337' })
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('chain_not_allowed', { status: 422, details: 'chain 31337', signed: undefined }),
    )
    expect(broadcasts()).toBe(0)
  })

  test('two quick clicks get two nonces', async () => {
    await Promise.all([client.signAndSend({ to, value: '1' }), client.signAndSend({ to, value: '1' })])
    expect(sent().map(({ nonce }) => nonce)).toEqual([7, 8])
  })

  test('a failure does not hold up the next', async () => {
    const other = new ServiceClient(config)
    const sendRaw = network.rpc.eth_sendRawTransaction
    network.rpc.eth_sendRawTransaction = () => {
      network.rpc.eth_sendRawTransaction = sendRaw ?? (() => null)
      throw new Error('insufficient funds for gas * price + value')
    }
    const first = client.signAndSend({ to })
    const second = other.signAndSend({ to })
    await expect(first).rejects.toEqual(withCode('rpc_insufficient_funds'))
    await second
    expect(sent().map(({ nonce }) => nonce)).toEqual([7])
  })

  test('the chain of the RPC is asked once for each client', async () => {
    await client.signAndSend({ to })
    await client.signAndSend({ to })
    expect(network.rpcMethods().filter((method) => method === 'eth_chainId')).toHaveLength(1)
  })
})

describe('chains and their RPC', () => {
  test('§1.7 the two test networks have a public RPC built in', () => {
    const url = (id: number) =>
      new ServiceClient({ ...config, chainId: id, rpcUrl: undefined }).publicClient.transport.url
    expect([url(11155111), url(84532)]).toEqual([
      'https://ethereum-sepolia-rpc.publicnode.com',
      'https://sepolia.base.org',
    ])
  })

  test('§2 rpcUrl overrides the default public RPC', () => {
    const { publicClient } = new ServiceClient({ ...config, chainId: 11155111 })
    expect(publicClient.transport.url).toBe(config.rpcUrl)
  })

  test('another chain without rpcUrl: building does not throw, the first use does, before anything is signed', async () => {
    const bare = new ServiceClient({ apiBaseUrl: config.apiBaseUrl, chainId: 1 })
    expect(() => bare.publicClient).toThrow(withCode('rpc_url_missing'))
    await expect(bare.signAndSend({ to })).rejects.toEqual(withCode('rpc_url_missing'))
    expect(signings()).toBe(0)
  })

  test('an empty rpcUrl is none', () => {
    const { publicClient } = new ServiceClient({ ...config, chainId: 84532, rpcUrl: '' })
    expect(publicClient.transport.url).toBe('https://sepolia.base.org')
    expect(() => new ServiceClient({ ...config, rpcUrl: '' }).publicClient).toThrow(withCode('rpc_url_missing'))
  })
})

describe('a service that lies', () => {
  const stranger = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const answer = (change: (signature: Hex) => Hex) => {
    const sign = network.routes['POST /sign/digest']
    network.routes['POST /sign/digest'] = async (call) => {
      const { signature, slug } = await ((await sign?.(call)) ?? json({})).json()
      return json({ signature: change(signature), slug })
    }
  }

  test('the signature of another wallet is not broadcast', async () => {
    let asked: TxMetadata | undefined
    network.routes['POST /sign/digest'] = async ({ body }) => {
      const { digest, txMetadata } = body as { digest: Hex; txMetadata: TxMetadata }
      asked = txMetadata
      return json({ signature: await stranger.sign({ hash: digest }), slug: 's' })
    }
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    expect(failure).toEqual(withCode('signature_mismatch'))
    expect(broadcasts()).toBe(0)
    // What the other wallet has signed is public all the same: hash and slug lead to its proof.
    const foreign = await stranger.signTransaction({
      type: 'eip1559',
      chainId,
      nonce: 7,
      to,
      gas: 21000n,
      maxFeePerGas: BigInt(asked?.maxFeePerGas ?? 0),
      maxPriorityFeePerGas: BigInt(asked?.maxPriorityFeePerGas ?? 0),
    })
    expect(failure).toMatchObject({ signed: { txHash: keccak256(foreign), attestationSlug: 's' } })
  })

  test('a signature that recovers to nobody has no hash; the error names its slug', async () => {
    answer(() => `0x${'00'.repeat(65)}`)
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('signature_mismatch', { signed: undefined, details: expect.stringContaining('slug-1') }),
    )
  })

  test.each<[string, (signature: Hex) => Hex]>([
    ['over another digest', (signature) => `0x${'11'.repeat(32)}${signature.slice(66)}`],
    ['with the other v', (signature) => `${signature.slice(0, -2)}${signature.endsWith('1b') ? '1c' : '1b'}` as Hex],
    ['with v = 29', (signature) => `${signature.slice(0, -2)}1d` as Hex],
    ['of zeros', () => `0x${'00'.repeat(65)}`],
    [
      'with the high s, which nodes refuse',
      (signature) => {
        const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
        return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}` as Hex
      },
    ],
  ])('a signature %s is not broadcast', async (_, change) => {
    answer(change)
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('signature_mismatch'))
    expect(broadcasts()).toBe(0)
  })

  test('signTransaction gives the bytes, their hash and the slug', async () => {
    const transaction = {
      chainId,
      nonce: 0,
      to,
      value: 1n,
      data: '0x',
      gas: 21000n,
      maxFeePerGas: 2n,
      maxPriorityFeePerGas: 1n,
    } as const
    const { serializedTransaction, signed } = await signTransaction(client, { wallet, transaction })
    expect(signed).toEqual({ txHash: keccak256(serializedTransaction), attestationSlug: 'slug-1' })
    expect(network.mempool).toEqual([])
    const broken = { wallet, transaction: { ...transaction, to: '0x12' as Hex } }
    await expect(signTransaction(client, broken)).rejects.toEqual(withCode('invalid_request'))
    expect(signings()).toBe(1)
  })
})

describe('an answer to the signing that is lost', () => {
  const digests = () =>
    network.calls.filter(({ url }) => url.endsWith('/sign/digest')).map(({ body }) => (body as { digest: Hex }).digest)

  /** The service signs, and something else comes back, as often as there are answers. */
  const lose = (...answers: ((call: Parameters<typeof never>[0]) => Response | Promise<Response>)[]) => {
    const sign = network.routes['POST /sign/digest'] ?? (() => json({}))
    network.routes['POST /sign/digest'] = async (call) => {
      const signed = await sign(call)
      const answer = answers.shift()
      return answer === undefined ? signed : answer(call)
    }
  }
  const gone = () => Promise.reject(new TypeError('Failed to fetch'))

  test.each([
    ['the network is gone', gone],
    ['a proxy answers 200 with HTML', () => html()],
    ['a proxy answers 504 with HTML', () => html(504)],
    ['JSON is cut short', () => new Response('{"signature":"0x')],
  ])('%s: the same digest is asked for once more, and there is one transaction', async (_, answer) => {
    lose(answer)
    expect(await client.signAndSend({ to })).toMatchObject({ attestationSlug: 'slug-1' })
    expect(digests()).toHaveLength(2)
    expect(new Set(digests()).size).toBe(1)
    expect(network.mempool).toHaveLength(1)
  })

  test.each([
    ['lost again', gone],
    ['refused', () => problem(429, 'rate_limited', { retryable: true })],
    ['refused for want of a session', () => problem(401, 'session_expired')],
  ])('the second answer is %s: the error says that it may have been signed', async (_, second) => {
    lose(gone, second)
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    const [digest] = digests()
    expect(failure).toEqual(withCode('network_unreachable', { retryable: false, status: undefined }))
    expect(failure).toMatchObject({
      details: `it may have been signed, digest ${digest}: look in listTransactions first`,
      cause: { name: 'ServiceError' },
    })
    expect([digests().length, broadcasts()]).toEqual([2, 0])
  })

  test('somebody else has signed in meanwhile: their key is not asked, and the error says that it may have been signed', async () => {
    lose(() => {
      network.routes['GET /wallet/me'] = () => json({ ...wallet, address: to })
      return gone()
    })
    const failure = await signAndSend(client, { wallet, call: parseSignRequest({ to }) }).catch(
      (error: unknown) => error,
    )
    const [digest] = digests()
    expect(failure).toEqual(withCode('wallet_changed', { retryable: false, signed: undefined }))
    expect(failure).toMatchObject({
      details: `it may have been signed, digest ${digest}: look in listTransactions first`,
      cause: { code: 'wallet_changed', details: to },
    })
    expect([digests().length, broadcasts()]).toEqual([1, 0])
  })

  test('the wallet cannot be looked at: nothing is asked for again, and the error is that of the lost answer', async () => {
    lose(() => {
      network.routes['GET /wallet/me'] = () => problem(401, 'session_expired')
      return html(504)
    })
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('response_invalid', { status: 504, details: expect.stringContaining('may have been signed') }),
    )
    expect(digests()).toHaveLength(1)
  })

  test.each([
    ['the service refuses', () => problem(503, 'entropy_unavailable', { retryable: true }), 'entropy_unavailable'],
    ['something on the way refuses', () => html(403), 'response_invalid'],
  ])('%s: that is an answer, and is not asked for again', async (_, answer, code) => {
    lose(answer)
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode(code))
    expect(digests()).toHaveLength(1)
  })
})

describe('somebody else has signed in, in another tab', () => {
  const other = { ...wallet, address: to } as const

  test('nothing is signed with their key', async () => {
    const sending = signAndSend(client, { wallet, call: parseSignRequest({ to }) })
    network.routes['GET /wallet/me'] = () => json(other)
    await expect(sending).rejects.toEqual(withCode('wallet_changed', { signed: undefined }))
    expect([signings(), broadcasts()]).toEqual([0, 0])
  })

  test('also where it happened while the call waited for its turn', async () => {
    const gate = createGate()
    const sendRaw = network.rpc.eth_sendRawTransaction
    network.rpc.eth_sendRawTransaction = async (params, call) => {
      await gate.opened
      return sendRaw?.(params, call)
    }
    const first = client.signAndSend({ to })
    const second = client.signAndSend({ to })
    await expect.poll(() => broadcasts()).toBe(1)
    network.routes['GET /wallet/me'] = () => json(other)
    gate.open()
    await first
    await expect(second).rejects.toEqual(withCode('wallet_changed'))
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test('also where it happened while a node was thinking', async () => {
    const gate = createGate()
    network.rpc.eth_getTransactionCount = () => gate.opened.then(() => '0x7')
    const sending = client.signAndSend({ to })
    await expect.poll(() => network.rpcMethods()).toContain('eth_maxPriorityFeePerGas')
    network.routes['GET /wallet/me'] = () => json(other)
    gate.open()
    await expect(sending).rejects.toEqual(withCode('wallet_changed'))
    expect(signings()).toBe(0)
  })

  test('the wallet that is given pays, or none does', async () => {
    await client.signAndSend({ to }, { wallet })
    expect(network.mempool).toHaveLength(1)
    await expect(client.signAndSend({ to }, { wallet: other })).rejects.toEqual(withCode('wallet_changed'))
    expect(signings()).toBe(1)
  })

  test('at the last moment: the service is told which wallet is given, and it refuses', async () => {
    network.routes['POST /sign/digest'] = ({ body }) => {
      expect(body).toMatchObject({ wallet: wallet.address })
      network.routes['GET /wallet/me'] = () => json(other)
      return problem(404, 'vault_not_found')
    }
    await expect(client.signAndSend({ to }, { wallet })).rejects.toEqual(
      withCode('wallet_changed', { details: expect.stringContaining(other.address) }),
    )
    expect([signings(), broadcasts()]).toEqual([1, 0])
  })

  test('somebody without a wallet: wallet_not_ready', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    const sending = signAndSend(client, { wallet, call: parseSignRequest({ to }) })
    await expect(sending).rejects.toEqual(withCode('wallet_not_ready'))
    expect(signings()).toBe(0)
  })

  test('the case of the address does not matter', async () => {
    const named = { ...wallet, address: getAddress(wallet.address) }
    await signAndSend(client, { wallet: named, call: parseSignRequest({ to }) })
    expect(network.mempool).toHaveLength(1)
  })
})

describe('an RPC of many nodes that does not count our last transaction yet', () => {
  const counts = () => network.rpcMethods().filter((method) => method === 'eth_getTransactionCount').length
  const waitForIt = () => vi.advanceTimersByTimeAsync(NONCE_RETRIES * NONCE_RETRY_MS)
  beforeEach(async () => {
    await client.signAndSend({ to, value: 1n })
    vi.useFakeTimers()
  })

  test('it is asked again until it does, also by another client', async () => {
    const count = network.rpc.eth_getTransactionCount ?? (() => null)
    network.rpc.eth_getTransactionCount = () => {
      network.rpc.eth_getTransactionCount = count
      return '0x7'
    }
    const second = new ServiceClient(config).signAndSend({ to, value: 2n })
    await vi.advanceTimersByTimeAsync(NONCE_RETRY_MS - 1)
    expect(network.mempool).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    await second
    expect(sent()).toMatchObject([
      { nonce: 7, value: 1n },
      { nonce: 8, value: 2n },
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('it never does, and knows the transaction: refused before anything is signed, so that none is replaced', async () => {
    network.rpc.eth_getTransactionCount = () => '0x7'
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('rpc_failed', { details: expect.stringContaining('nonce 7'), signed: undefined }),
    )
    await waitForIt()
    await failure
    expect([counts(), signings()]).toEqual([1 + 1 + NONCE_RETRIES, 1])
  })

  test('it never does, and does not know the transaction: that one was dropped, and its nonce is free', async () => {
    network.mempool.length = 0
    network.rpc.eth_getTransactionCount = () => '0x7'
    const second = client.signAndSend({ to, value: 2n })
    await waitForIt()
    await second
    expect(sent()).toMatchObject([{ nonce: 7, value: 2n }])
  })

  test('it never does, and does not answer to the hash: nothing is signed', async () => {
    network.rpc.eth_getTransactionCount = () => '0x7'
    network.rpc.eth_getTransactionByHash = () => Promise.reject(new Error('busy'))
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed', { details: 'busy' }))
    await waitForIt()
    await failure
    expect(signings()).toBe(1)
  })

  test('a broadcast that was refused is none to wait for', async () => {
    vi.useRealTimers()
    const sendRaw = network.rpc.eth_sendRawTransaction ?? (() => null)
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error('insufficient funds'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_insufficient_funds'))
    network.rpc.eth_sendRawTransaction = sendRaw
    const before = counts()
    await client.signAndSend({ to })
    expect(counts()).toBe(before + 1)
  })
})

describe('the cap of fees', () => {
  test.each([
    ['at the cap', { cap: (fee: bigint) => fee }, true],
    ['one wei above the cap', { cap: (fee: bigint) => fee - 1n }, false],
    ['a cap that is no number', { cap: () => Number.NaN as unknown as bigint }, false],
  ])('fees %s', async (_, { cap }, isSigned) => {
    const { maxFeePerGas } = await client.publicClient.estimateFeesPerGas()
    const capped = new ServiceClient({ ...client.config, maxFeePerGas: cap(maxFeePerGas) })
    const outcome = await capped.signAndSend({ to }).then(
      () => 'signed',
      (error: { code: string }) => error.code,
    )
    expect(outcome).toBe(isSigned ? 'signed' : 'fees_absurd')
  })

  test('the cap can be lifted above its default of 10,000 gwei, and is there to be shown', async () => {
    expect(client.config.maxFeePerGas).toBe(10n ** 13n)
    network.rpc.eth_maxPriorityFeePerGas = () => '0x9184e72a000'
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('fees_absurd'))
    await new ServiceClient({ ...client.config, maxFeePerGas: 2n * 10n ** 13n }).signAndSend({ to })
  })
})

describe('an RPC that lies or fails before anything is signed', () => {
  afterEach(() => {
    expect(signings()).toBe(0)
    expect(broadcasts()).toBe(0)
  })

  test('another chain', async () => {
    network.rpc.eth_chainId = () => '0x1'
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_chain_mismatch'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_chain_mismatch'))
  })

  test.each([
    ['a priority fee of 10,000 gwei', () => (network.rpc.eth_maxPriorityFeePerGas = () => '0x9184e72a000')],
    [
      'a base fee of 2^200',
      () => (network.rpc.eth_getBlockByNumber = () => ({ baseFeePerGas: `0x1${'0'.repeat(50)}`, transactions: [] })),
    ],
  ])('absurd fees: %s', async (_, lie) => {
    lie()
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('fees_absurd'))
  })

  const questions = ['eth_chainId', 'eth_getTransactionCount', 'eth_getBlockByNumber']
  const answers: [string, () => unknown][] = [
    ['null', () => null],
    ['no hex', () => 'latest'],
    ['an object', () => ({})],
    ['HTML', () => html()],
    ['HTML with 403', () => html(403)],
    [
      'JSON cut short',
      () => new Response('{"jsonrpc":"2.0","res', { headers: { 'content-type': 'application/json' } }),
    ],
    ['JSON null', () => json(null)],
    ['an error', () => Promise.reject(new Error('header not found'))],
  ]
  test.each(questions.flatMap((method) => answers.map(([name, answer]) => [method, name, answer] as const)))(
    '%s answers %s',
    async (method, _, answer) => {
      network.rpc[method] = answer
      await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed', { signed: undefined }))
    },
  )

  test('a nonce beyond 2^53', async () => {
    network.rpc.eth_getTransactionCount = () => '0xffffffffffffffff'
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed'))
  })

  test('the words of the RPC stand in details, and its address does not', async () => {
    network.rpc.eth_getTransactionCount = () => Promise.reject(new Error('header not found'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed', { details: 'header not found' }))
    network.rpc.eth_getTransactionCount = () => html(403)
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error as { details: string })
    expect(failure).not.toMatchObject({ details: expect.stringContaining('rpc.test') })
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('%s never comes: the call ends in time', async (_, answer) => {
    vi.useFakeTimers()
    network.rpc.eth_getTransactionCount = answer
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_timeout', { signed: undefined }))
    await vi.advanceTimersByTimeAsync(2 * RPC_TIMEOUT_MS + 1000)
    await failure
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('%s never comes to an app that asks by `publicClient` itself: that ends in time too', async (_, answer) => {
    vi.useFakeTimers()
    network.rpc.eth_getBalance = answer
    const failure = expect(client.publicClient.getBalance({ address: to })).rejects.toThrow(HttpRequestError)
    await vi.advanceTimersByTimeAsync(2 * RPC_TIMEOUT_MS + 1000)
    await failure
    expect(network.rpcMethods()).toEqual(['eth_getBalance', 'eth_getBalance'])
  })
})

describe('a broadcast that fails: nothing is signed again, and the error carries what was signed', () => {
  const signed = { txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/), attestationSlug: 'slug-1' }

  test.each([
    ['insufficient funds for gas * price + value: balance 0, tx cost 21000', 'rpc_insufficient_funds'],
    ["Sender doesn't have enough funds to send tx. The max upfront cost is: 1", 'rpc_insufficient_funds'],
    ['intrinsic gas too low: gas 21000, minimum needed 21064', 'rpc_gas_rejected'],
    ['Transaction requires at least 21064 gas but got 21000', 'rpc_gas_rejected'],
    ['exceeds block gas limit', 'rpc_gas_rejected'],
    ['replacement transaction underpriced', 'rpc_underpriced'],
    ['max fee per gas less than block base fee', 'rpc_underpriced'],
    ['nonce too low: next nonce 8, tx nonce 7', 'rpc_nonce_too_low'],
    ['Nonce too low. Expected nonce to be 8 but got 7.', 'rpc_nonce_too_low'],
    ['transaction type not supported', 'rpc_failed'],
  ])('§7 the RPC says “%s”: %s', async (words, code) => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    expect(failure).toEqual(withCode(code, { signed }))
    expect(failure).toMatchObject({ details: words })
    expect(signings()).toBe(1)
    expect(broadcasts()).toBe(1)
  })

  const vague = ['', 'request timed out', 'internal error', 'rate limit exceeded', 'daily request count exceeded']
  test.each(vague)('the RPC says “%s”, which is no refusal: the outcome is unknown', async (words) => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('broadcast_unknown', { signed, details: expect.stringContaining(words) }),
    )
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test.each(vague)('the RPC says “%s” and knows the hash: that is success', async (words) => {
    network.rpc.eth_sendRawTransaction = ([raw]) => {
      network.mempool.push(raw as Hex)
      throw new Error(words)
    }
    expect(await client.signAndSend({ to })).toEqual(signed)
  })

  const silent: [string, () => unknown][] = [
    ['answers with an error', () => Promise.reject(new Error('busy'))],
    ['limits the calls', () => html(429)],
  ]
  test.each(silent)('nonce too low, and the RPC %s when asked for the hash: that is no “no”', async (_, answer) => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error('nonce too low'))
    network.rpc.eth_getTransactionByHash = answer
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
  })

  test('an unknown type of transaction is no known transaction', async () => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error('unknown transaction type'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
  })

  test.each(['already known', 'ALREADY_EXISTS: already known', 'Known transaction: 0x12', 'AlreadyKnown'])(
    'the RPC says “%s” of our own bytes: that is success',
    async (words) => {
      network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
      expect(await client.signAndSend({ to })).toEqual(signed)
    },
  )

  test('nonce too low because this very transaction is in: that is success', async () => {
    network.rpc.eth_sendRawTransaction = ([raw]) => {
      network.mempool.push(raw as Hex)
      throw new Error('nonce too low')
    }
    expect(await client.signAndSend({ to })).toEqual(signed)
    expect(signings()).toBe(1)
  })

  test('another hash', async () => {
    const lie = `0x${'99'.repeat(32)}`
    network.rpc.eth_sendRawTransaction = () => lie
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error as { signed: { txHash: Hex } })
    expect(failure).toEqual(withCode('rpc_hash_mismatch', { signed, details: expect.stringContaining(lie) }))
    const { txHash } = (failure as { signed: { txHash: Hex } }).signed
    expect(failure).toMatchObject({ details: expect.stringContaining(txHash) })
  })

  const unclear: [string, () => unknown][] = [
    ['null', () => null],
    ['no hash', () => '0x'],
    ['HTML', () => html()],
    ['HTML with 502', () => html(502)],
    ['JSON cut short', () => new Response('{"result":"0x', { headers: { 'content-type': 'application/json' } })],
    ['JSON null', () => json(null)],
  ]
  test.each(unclear)('%s, and the RPC does not know the hash: the outcome is unknown', async (_, answer) => {
    network.rpc.eth_sendRawTransaction = answer
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
    expect(network.rpcMethods().at(-1)).toBe('eth_getTransactionByHash')
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test.each(unclear)('%s, and the RPC knows the hash: that is success', async (_, answer) => {
    network.rpc.eth_sendRawTransaction = ([raw]) => {
      network.mempool.push(raw as Hex)
      return answer()
    }
    expect(await client.signAndSend({ to })).toEqual(signed)
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test('the RPC shows another transaction for the hash: that proves nothing', async () => {
    network.rpc.eth_sendRawTransaction = () => null
    network.rpc.eth_getTransactionByHash = () => ({ hash: `0x${'99'.repeat(32)}` })
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('%s never comes, not even to the question for the hash: it ends, and the next may send', async (_, answer) => {
    vi.useFakeTimers()
    const sendRaw = network.rpc.eth_sendRawTransaction
    network.rpc.eth_sendRawTransaction = answer
    network.rpc.eth_getTransactionByHash = answer
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
    await vi.advanceTimersByTimeAsync(3 * RPC_TIMEOUT_MS + 1000)
    await failure
    expect([signings(), broadcasts()]).toEqual([1, 1])
    vi.useRealTimers()
    network.rpc.eth_sendRawTransaction = sendRaw ?? (() => null)
    await client.signAndSend({ to })
    expect(network.mempool).toHaveLength(1)
  })
})
