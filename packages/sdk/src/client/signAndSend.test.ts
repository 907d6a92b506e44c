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
  test('runs the steps in order and builds the expected transaction', async () => {
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

  test('reads nonce and fees in parallel and counts pending transactions', async () => {
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

  test('§2 takes bigints as wei and strings as ether, and passes data and gas on', async () => {
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

  test('accepts a valid checksum and rejects a wrong one', async () => {
    await client.signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' })
    await expect(client.signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79c8' })).rejects.toEqual(
      withCode('invalid_request'),
    )
  })

  test('accepts an address in capitals, which has no checksum', async () => {
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
      'a getter',
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
    ['data that is not hex', { to, data: '0xzz' }],
    ['gas as a number', { to, gas: 21000 }],
    ['no gas', { to, gas: 0n }],
    ['negative gas', { to, gas: -1n }],
    ['gas beyond 64 bits', { to, gas: 1n << 64n }],
  ])('rejects %s before sending', async (_, request) => {
    await expect(client.signAndSend(request as SignRequest)).rejects.toEqual(withCode('invalid_request'))
    expect(network.calls).toEqual([])
  })

  test('DESIGN §2: rejects with Error("wallet_not_ready") without a wallet and sends no more requests', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    expect(failure).toMatchObject({ message: 'wallet_not_ready', code: 'wallet_not_ready' })
    expect(network.paths()).toEqual(['GET /wallet/me'])
    expect(network.rpcMethods()).toEqual([])
  })

  test('passes the service’s error on and does not broadcast', async () => {
    network.routes['POST /sign/digest'] = () => problem(422, 'chain_not_allowed', { detail: 'chain 31337' })
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('chain_not_allowed', { status: 422, details: 'chain 31337', signed: undefined }),
    )
    expect(broadcasts()).toBe(0)
  })

  test('two quick clicks use two nonces', async () => {
    await Promise.all([client.signAndSend({ to, value: '1' }), client.signAndSend({ to, value: '1' })])
    expect(sent().map(({ nonce }) => nonce)).toEqual([7, 8])
  })

  test('a failure does not block the next call', async () => {
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

  test('asks for the RPC’s chain once per client', async () => {
    await client.signAndSend({ to })
    await client.signAndSend({ to })
    expect(network.rpcMethods().filter((method) => method === 'eth_chainId')).toHaveLength(1)
  })
})

describe('chains and their RPC', () => {
  test('§1.7 has a built-in public RPC for two test networks', () => {
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

  test('without rpcUrl on another chain, the first use throws before signing', async () => {
    const bare = new ServiceClient({ apiBaseUrl: config.apiBaseUrl, chainId: 1 })
    expect(() => bare.publicClient).toThrow(withCode('rpc_url_missing'))
    await expect(bare.signAndSend({ to })).rejects.toEqual(withCode('rpc_url_missing'))
    expect(signings()).toBe(0)
  })

  test('treats an empty rpcUrl as missing', () => {
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
    // The other wallet's signature is public: hash and slug lead to its proof.
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

  test('an unrecoverable signature has no hash, and the error names its slug', async () => {
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
      'with a high s, which nodes reject',
      (signature) => {
        const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
        return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}` as Hex
      },
    ],
  ])('does not broadcast a signature %s', async (_, change) => {
    answer(change)
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('signature_mismatch'))
    expect(broadcasts()).toBe(0)
  })

  test('signTransaction returns the bytes, their hash and the slug', async () => {
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

describe('a lost answer to the signing', () => {
  const digests = () =>
    network.calls.filter(({ url }) => url.endsWith('/sign/digest')).map(({ body }) => (body as { digest: Hex }).digest)

  /** The service signs, but the client gets each of these answers in turn. */
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
  ])('requests the same digest again after %s, and sends one transaction', async (_, answer) => {
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
  ])('the error says that it may have been signed if the second answer is %s', async (_, second) => {
    lose(gone, second)
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    const [digest] = digests()
    expect(failure).toEqual(withCode('network_unreachable', { retryable: false, status: undefined }))
    expect(failure).toMatchObject({
      details: expect.stringContaining(String(digest)),
      cause: { name: 'ServiceError' },
    })
    expect([digests().length, broadcasts()]).toEqual([2, 0])
  })

  test('does not retry with the key of a user who has signed in meanwhile', async () => {
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
      details: expect.stringContaining(String(digest)),
      cause: { code: 'wallet_changed', details: to },
    })
    expect([digests().length, broadcasts()]).toEqual([1, 0])
  })

  test('does not retry if it cannot read the wallet, and keeps the first error', async () => {
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
  ])('does not retry after %s', async (_, answer, code) => {
    lose(answer)
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode(code))
    expect(digests()).toHaveLength(1)
  })
})

describe('another user has signed in, in another tab', () => {
  const other = { ...wallet, address: to } as const

  test('does not sign with their key', async () => {
    const sending = signAndSend(client, { wallet, call: parseSignRequest({ to }) })
    network.routes['GET /wallet/me'] = () => json(other)
    await expect(sending).rejects.toEqual(withCode('wallet_changed', { signed: undefined }))
    expect([signings(), broadcasts()]).toEqual([0, 0])
  })

  test('nor if it happened while the call waited in the queue', async () => {
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

  test('nor if it happened during a request to the node', async () => {
    const gate = createGate()
    network.rpc.eth_getTransactionCount = () => gate.opened.then(() => '0x7')
    const sending = client.signAndSend({ to })
    await expect.poll(() => network.rpcMethods()).toContain('eth_maxPriorityFeePerGas')
    network.routes['GET /wallet/me'] = () => json(other)
    gate.open()
    await expect(sending).rejects.toEqual(withCode('wallet_changed'))
    expect(signings()).toBe(0)
  })

  test('only the given wallet pays', async () => {
    await client.signAndSend({ to }, { wallet })
    expect(network.mempool).toHaveLength(1)
    await expect(client.signAndSend({ to }, { wallet: other })).rejects.toEqual(withCode('wallet_changed'))
    expect(signings()).toBe(1)
  })

  test('names the given wallet to the service, which rejects another session', async () => {
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

  test('rejects with wallet_not_ready for a user without a wallet', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    const sending = signAndSend(client, { wallet, call: parseSignRequest({ to }) })
    await expect(sending).rejects.toEqual(withCode('wallet_not_ready'))
    expect(signings()).toBe(0)
  })

  test('ignores the case of the address', async () => {
    const named = { ...wallet, address: getAddress(wallet.address) }
    await signAndSend(client, { wallet: named, call: parseSignRequest({ to }) })
    expect(network.mempool).toHaveLength(1)
  })
})

describe('an RPC that does not count the last transaction yet', () => {
  const counts = () => network.rpcMethods().filter((method) => method === 'eth_getTransactionCount').length
  const waitForIt = () => vi.advanceTimersByTimeAsync(NONCE_RETRIES * NONCE_RETRY_MS)
  beforeEach(async () => {
    await client.signAndSend({ to, value: 1n })
    vi.useFakeTimers()
  })

  test('is asked again until it does, also by another client', async () => {
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

  test('fails before signing if the RPC knows the last transaction but never counts it', async () => {
    network.rpc.eth_getTransactionCount = () => '0x7'
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('rpc_failed', { details: expect.stringContaining('nonce 7'), signed: undefined }),
    )
    await waitForIt()
    await failure
    expect([counts(), signings()]).toEqual([1 + 1 + NONCE_RETRIES, 1])
  })

  test('reuses the nonce if the RPC does not know the last transaction', async () => {
    network.mempool.length = 0
    network.rpc.eth_getTransactionCount = () => '0x7'
    const second = client.signAndSend({ to, value: 2n })
    await waitForIt()
    await second
    expect(sent()).toMatchObject([{ nonce: 7, value: 2n }])
  })

  test('fails before signing if the RPC does not answer about the last transaction', async () => {
    network.rpc.eth_getTransactionCount = () => '0x7'
    network.rpc.eth_getTransactionByHash = () => Promise.reject(new Error('busy'))
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed', { details: 'busy' }))
    await waitForIt()
    await failure
    expect(signings()).toBe(1)
  })

  test('does not wait for a rejected broadcast', async () => {
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

describe('the fee limit', () => {
  test.each([
    ['at the cap', { cap: (fee: bigint) => fee }, true],
    ['one wei above the cap', { cap: (fee: bigint) => fee - 1n }, false],
    ['a cap that is not a number', { cap: () => Number.NaN as unknown as bigint }, false],
  ])('fees %s', async (_, { cap }, isSigned) => {
    const { maxFeePerGas } = await client.publicClient.estimateFeesPerGas()
    const capped = new ServiceClient({ ...client.config, maxFeePerGas: cap(maxFeePerGas) })
    const outcome = await capped.signAndSend({ to }).then(
      () => 'signed',
      (error: { code: string }) => error.code,
    )
    expect(outcome).toBe(isSigned ? 'signed' : 'fees_absurd')
  })

  test('can be raised above its default of 10,000 gwei, and read from the client', async () => {
    expect(client.config.maxFeePerGas).toBe(10n ** 13n)
    network.rpc.eth_maxPriorityFeePerGas = () => '0x9184e72a000'
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('fees_absurd'))
    await new ServiceClient({ ...client.config, maxFeePerGas: 2n * 10n ** 13n }).signAndSend({ to })
  })
})

describe('an RPC that lies or fails before the signing', () => {
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
  ])('rejects absurd fees: %s', async (_, lie) => {
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

  test('rejects a nonce beyond 2^53', async () => {
    network.rpc.eth_getTransactionCount = () => '0xffffffffffffffff'
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed'))
  })

  test('details contain the RPC’s message but not its URL', async () => {
    network.rpc.eth_getTransactionCount = () => Promise.reject(new Error('header not found'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_failed', { details: 'header not found' }))
    network.rpc.eth_getTransactionCount = () => html(403)
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error as { details: string })
    expect(failure).not.toMatchObject({ details: expect.stringContaining('rpc.test') })
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('times out if %s never arrives', async (_, answer) => {
    vi.useFakeTimers()
    network.rpc.eth_getTransactionCount = answer
    const failure = expect(client.signAndSend({ to })).rejects.toEqual(withCode('rpc_timeout', { signed: undefined }))
    await vi.advanceTimersByTimeAsync(2 * RPC_TIMEOUT_MS + 1000)
    await failure
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('`publicClient` also times out if %s never arrives', async (_, answer) => {
    vi.useFakeTimers()
    network.rpc.eth_getBalance = answer
    const failure = expect(client.publicClient.getBalance({ address: to })).rejects.toThrow(HttpRequestError)
    await vi.advanceTimersByTimeAsync(2 * RPC_TIMEOUT_MS + 1000)
    await failure
    expect(network.rpcMethods()).toEqual(['eth_getBalance', 'eth_getBalance'])
  })
})

describe('a failed broadcast', () => {
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
  ])('§7 the message “%s” becomes %s', async (words, code) => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
    const failure = await client.signAndSend({ to }).catch((error: unknown) => error)
    expect(failure).toEqual(withCode(code, { signed }))
    expect(failure).toMatchObject({ details: words })
    expect(signings()).toBe(1)
    expect(broadcasts()).toBe(1)
  })

  const vague = ['', 'request timed out', 'internal error', 'rate limit exceeded', 'daily request count exceeded']
  test.each(vague)('the outcome is unknown after the message “%s”', async (words) => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
    await expect(client.signAndSend({ to })).rejects.toEqual(
      withCode('broadcast_unknown', { signed, details: expect.stringContaining(words) }),
    )
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test.each(vague)('succeeds after the message “%s” if the RPC knows the hash', async (words) => {
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
  test.each(silent)(
    'the outcome is unknown after nonce too low if the RPC %s when asked for the hash',
    async (_, answer) => {
      network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error('nonce too low'))
      network.rpc.eth_getTransactionByHash = answer
      await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
    },
  )

  test('does not take “type not supported” for “already known”', async () => {
    network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error('unknown transaction type'))
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
  })

  test.each(['already known', 'ALREADY_EXISTS: already known', 'Known transaction: 0x12', 'AlreadyKnown'])(
    'succeeds after “%s” for the same bytes',
    async (words) => {
      network.rpc.eth_sendRawTransaction = () => Promise.reject(new Error(words))
      expect(await client.signAndSend({ to })).toEqual(signed)
    },
  )

  test('succeeds after nonce too low if this transaction was mined', async () => {
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

  test.each(unclear)('succeeds after %s if the RPC knows the hash', async (_, answer) => {
    network.rpc.eth_sendRawTransaction = ([raw]) => {
      network.mempool.push(raw as Hex)
      return answer()
    }
    expect(await client.signAndSend({ to })).toEqual(signed)
    expect([signings(), broadcasts()]).toEqual([1, 1])
  })

  test('the outcome is unknown if the RPC returns another transaction for the hash', async () => {
    network.rpc.eth_sendRawTransaction = () => null
    network.rpc.eth_getTransactionByHash = () => ({ hash: `0x${'99'.repeat(32)}` })
    await expect(client.signAndSend({ to })).rejects.toEqual(withCode('broadcast_unknown', { signed }))
  })

  test.each([
    ['the answer', (_: unknown[], call: Parameters<typeof never>[0]) => never(call)],
    ['the body', () => new Response(new ReadableStream())],
  ])('times out if %s never arrives, also for the hash, and lets the next call send', async (_, answer) => {
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
