import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { attestationPublishedTopic, checkpointTopic, type Hex, toSizeTopic } from '@countersign/protocol'
import { type FakeChain, startFakeChain } from '@countersign/testing'
import { keccak256, parseTransaction } from 'viem/utils'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bumpFees } from '../confirm.ts'
import { ChainError } from './chainError.ts'
import { encodeAdvance, encodePublish } from './contract.ts'
import { type Chain, type CreateViemChainParameters, createViemChain } from './viemChain.ts'

// Hardhat's first two accounts, whose keys are public.
const privateKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const account = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
const strangerKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const contract = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
const logWitness = '0xe7f1725e7734ce288f8367e1bb143e90bb3f0512'
const logId: Hex = `0x${'1d'.repeat(32)}`

const gwei = 10n ** 9n
const proofOf = (byte: number) => ({
  wallet: `0x${byte.toString(16).padStart(40, '0')}` as Hex,
  txHash: `0x${byte.toString(16).padStart(64, '0')}` as Hex,
  ipfsCid: `bafkrei${'a'.repeat(50)}${byte}`,
})

/** Every method of the port, with bytes that were signed before. */
const methodsOf = (chain: Chain, raw: Hex): Record<string, () => Promise<unknown>> => ({
  assertReady: () => chain.assertReady(),
  getNonce: () => chain.getNonce('latest'),
  getBalance: () => chain.getBalance(),
  getFees: () => chain.getFees(),
  estimateGas: () => chain.estimateGas({ to: contract, data: encodePublish([proofOf(1)]) }),
  send: () => chain.send(raw),
  getReceipt: () => chain.getReceipt(keccak256(raw)),
  getHead: () => chain.getHead(),
  getBlockHash: () => chain.getBlockHash(0),
  findEvents: () => chain.findEvents({ proofs: [proofOf(1)], sinceMs: 0 }),
  readLog: () => chain.readLog({ contract: logWitness, id: logId }),
  findCheckpoints: () => chain.findCheckpoints({ contract: logWitness, id: logId, size: 1, sinceMs: 0 }),
})
const methodNames = Object.keys(methodsOf({} as Chain, '0x'))

const publish = (chain: Chain, nonce: number, options: { fees?: bigint; tip?: bigint; gas?: bigint } = {}) =>
  chain.sign({
    nonce,
    to: chain.contract,
    data: encodePublish([proofOf(nonce + 1)]),
    gas: options.gas ?? 200_000n,
    maxFeePerGas: options.fees ?? 3n * gwei,
    maxPriorityFeePerGas: options.tip ?? gwei,
  })

async function errorOf(promise: Promise<unknown>): Promise<ChainError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ChainError) return error
  throw new Error(`expected a ChainError, got ${String(error)}`)
}
const codeOf = async (promise: Promise<unknown>) => (await errorOf(promise)).code

describe('against a chain', () => {
  let node: FakeChain
  let chain: Chain
  const connect = (parameters: Partial<CreateViemChainParameters> = {}) =>
    createViemChain({ rpcUrl: node.url, chainId: node.chainId, contract, privateKey, ...parameters })

  beforeEach(async () => {
    node = await startFakeChain()
    chain = connect()
  })
  afterEach(() => node.stop())

  test('has its account, chain id and contract', () => {
    const upper = connect({ contract: `0x${contract.slice(2).toUpperCase()}` })
    expect([upper.chainId, upper.account, upper.contract]).toEqual([31_337, account, contract])
  })

  test('assertReady passes for a correct configuration', async () => {
    await expect(chain.assertReady()).resolves.toBeUndefined()
  })

  test('assertReady: an RPC of another chain', async () => {
    expect(await errorOf(connect({ chainId: 1 }).assertReady())).toMatchObject({
      code: 'chain_mismatch',
      details: 'expected chain 1, but the RPC serves 31337',
    })
  })

  test('assertReady: an address without code', async () => {
    expect(await codeOf(connect({ contract: account }).assertReady())).toBe('contract_missing')
  })

  test('assertReady: another publisher', async () => {
    node.setPublisher(contract)
    expect(await codeOf(chain.assertReady())).toBe('publisher_not_allowed')
    expect(await codeOf(connect({ privateKey: strangerKey }).assertReady())).toBe('publisher_not_allowed')
  })

  test('getNonce: after the newest block or the mempool, for any account', async () => {
    await chain.send((await publish(chain, 0)).raw)
    expect([await chain.getNonce('latest'), await chain.getNonce('pending')]).toEqual([0, 1])
    node.mine()
    expect([await chain.getNonce('latest'), await chain.getNonce('pending')]).toEqual([1, 1])
    expect(await chain.getNonce('latest', node.contract)).toBe(0)
  })

  test('getBalance: returns the balance, and rejects malformed amounts', async () => {
    expect(await chain.getBalance()).toBe(10_000n * 10n ** 18n)
    for (const result of ['1', '0x', `0x1${'0'.repeat(64)}`, null]) {
      const answer = async () => Response.json({ jsonrpc: '2.0', id: 1, result })
      expect(await codeOf(connect({ fetch: answer }).getBalance())).toBe('chain_unavailable')
    }
  })

  test('getFees: twice the base fee plus the tip', async () => {
    expect(await chain.getFees()).toEqual({ maxFeePerGas: 3n * gwei, maxPriorityFeePerGas: gwei })
    node.setBaseFee(50n * gwei)
    node.mine()
    expect(await chain.getFees()).toEqual({ maxFeePerGas: 101n * gwei, maxPriorityFeePerGas: gwei })
  })

  test('getFees: never above the limit', async () => {
    expect(await codeOf(connect({ maxFeePerGas: 3n * gwei - 1n }).getFees())).toBe('chain_unavailable')
    await expect(connect({ maxFeePerGas: 3n * gwei }).getFees()).resolves.toBeDefined()
  })

  test('sign: never above the limit, even for replacements', async () => {
    const limited = connect({ maxFeePerGas: 3n * gwei })
    expect(limited.maxFeePerGas).toBe(3n * gwei)
    await expect(publish(limited, 0, { fees: 3n * gwei })).resolves.toBeDefined()
    expect(await codeOf(publish(limited, 0, { fees: 3n * gwei + 1n }))).toBe('chain_unavailable')
    expect(await codeOf(publish(chain, 0, { fees: 10_000n * gwei + 1n }))).toBe('chain_unavailable')
  })

  test('estimateGas returns the gas that the transaction uses', async () => {
    const call = { to: contract, data: encodePublish([proofOf(1), proofOf(2)]) } as const
    const gas = await chain.estimateGas(call)
    const { raw, hash } = await chain.sign({ ...call, nonce: 0, gas, ...(await chain.getFees()) })
    await chain.send(raw)
    node.mine()
    expect(await chain.getReceipt(hash)).toMatchObject({ isSuccess: true, gasUsed: gas })
  })

  test('estimateGas: a call that would revert, with the contract’s reason', async () => {
    const data = encodePublish([proofOf(1), { ...proofOf(2), ipfsCid: '' }])
    expect(await errorOf(chain.estimateGas({ to: contract, data }))).toMatchObject({
      code: 'call_reverted',
      details: 'EmptyCid',
    })
    const stranger = connect({ privateKey: strangerKey })
    expect(await errorOf(stranger.estimateGas({ to: contract, data }))).toMatchObject({ details: 'NotPublisher' })
    expect(await errorOf(chain.estimateGas({ to: contract, data: '0x' }))).toMatchObject({ details: 'no reason' })
  })

  test('sign: the same bytes each time, without a request', async () => {
    const { raw, hash } = await publish(chain, 7)
    expect(await publish(chain, 7)).toEqual({ raw, hash })
    expect(hash).toBe(keccak256(raw))
    expect(parseTransaction(raw)).toMatchObject({ type: 'eip1559', chainId: 31_337, nonce: 7, to: contract })
    expect(node.requests).toEqual({})
  })

  test('sign: a self-transfer with a value', async () => {
    const { raw, hash } = await chain.sign({
      nonce: 0,
      to: account,
      data: '0x',
      gas: 21_000n,
      value: 5n,
      ...(await chain.getFees()),
    })
    await chain.send(raw)
    node.mine()
    expect(node.transactions()).toMatchObject([{ hash, from: account, to: account, value: 5n, isSuccess: true }])
  })

  test('send: succeeds again, and after the transaction was mined', async () => {
    const { raw, hash } = await publish(chain, 0)
    await chain.send(raw)
    await chain.send(raw)
    node.mine()
    await chain.send(raw)
    expect(node.transactions().map((item) => item.hash)).toEqual([hash])
    expect(node.requests.eth_sendRawTransaction).toBe(3)
  })

  test('send: the nonce went to another transaction', async () => {
    const { raw } = await publish(chain, 0)
    await node.sendFromElsewhere({ privateKey, nonce: 0 })
    expect(await codeOf(chain.send(raw))).toBe('nonce_too_low')
  })

  test('send: rejects an underpriced replacement, then accepts a higher one', async () => {
    await chain.send((await publish(chain, 0)).raw)
    expect(await codeOf(chain.send((await publish(chain, 0, { fees: 3n * gwei + 1n })).raw))).toBe('underpriced')
    const fees = { maxFeePerGas: 3n * gwei, maxPriorityFeePerGas: gwei }
    const { maxFeePerGas, maxPriorityFeePerGas } = bumpFees(fees, fees)
    const { raw, hash } = await publish(chain, 0, { fees: maxFeePerGas, tip: maxPriorityFeePerGas })
    await chain.send(raw)
    expect(node.mempool().map((item) => item.hash)).toEqual([hash])
  })

  test('send: an account that cannot pay', async () => {
    node.setBalance(account, 0n)
    expect(await codeOf(chain.send((await publish(chain, 0)).raw))).toBe('insufficient_funds')
  })

  test('send: other rejections', async () => {
    expect(await errorOf(chain.send((await publish(chain, 0, { gas: 21_000n })).raw))).toMatchObject({
      code: 'transaction_refused',
      details: expect.stringContaining('intrinsic gas too low'),
    })
    expect(await codeOf(chain.send('0x02c0'))).toBe('transaction_refused')
    expect(await codeOf(chain.send((await publish(connect({ chainId: 1 }), 0)).raw))).toBe('transaction_refused')
  })

  test('getReceipt: none before the block, the events after it, none after a reorganisation', async () => {
    const data = encodePublish([proofOf(1), proofOf(2)])
    const { raw, hash } = await chain.sign({ nonce: 0, to: contract, data, gas: 200_000n, ...(await chain.getFees()) })
    expect(await chain.getReceipt(hash)).toBeUndefined()
    await chain.send(raw)
    expect(await chain.getReceipt(hash)).toBeUndefined()
    node.mine()
    const receipt = await chain.getReceipt(hash.toUpperCase().replace('X', 'x') as Hex)
    expect(receipt).toMatchObject({ hash, isSuccess: true, blockNumber: 1, blockHash: node.head.hash })
    expect(receipt?.events).toEqual([proofOf(1), proofOf(2)])
    expect(await chain.getBlockHash(1)).toBe(receipt?.blockHash)
    node.reorg(1)
    expect(await chain.getReceipt(hash)).toBeUndefined()
    expect(await chain.getBlockHash(1)).not.toBe(receipt?.blockHash)
  })

  test('getReceipt: a revert is in its block, without events', async () => {
    node.revertFor(proofOf(1).txHash)
    const { raw, hash } = await publish(chain, 0)
    await chain.send(raw)
    node.mine()
    expect(await chain.getReceipt(hash)).toMatchObject({ isSuccess: false, blockNumber: 1, events: [] })
  })

  test('findEvents: of these proofs, since that time, window by window', async () => {
    // One second per block from now on.
    const start = Date.now()
    for (const nonce of [0, 1]) {
      await chain.send((await publish(chain, nonce)).raw)
      node.mine(1200)
    }
    const find = (proofs: ReturnType<typeof proofOf>[], sinceMs: number) => chain.findEvents({ proofs, sinceMs })
    const asked = () => node.requests.eth_getLogs ?? 0
    expect(await find([proofOf(1), proofOf(2), proofOf(3)], start)).toEqual([proofOf(1), proofOf(2)])
    expect(asked()).toBe(3)
    expect(await find([proofOf(1), proofOf(2)], start + 600_000)).toEqual([proofOf(2)])
    expect(asked()).toBe(5)
    expect(await find([{ ...proofOf(1), wallet: proofOf(2).wallet }, proofOf(3)], start)).toEqual([])
  })

  test('findEvents: asks a node without old blocks only for recent ones', async () => {
    const start = Date.now()
    node.mine(4000)
    await chain.send((await publish(chain, 0)).raw)
    node.mine(40)
    node.setLimits({ firstBlock: 3000 })
    const find = (sinceMs: number) => chain.findEvents({ proofs: [proofOf(1)], sinceMs })
    expect(await find(start + 4_030_000)).toEqual([])
    expect(await find(start + 3_900_000)).toEqual([proofOf(1)])
    expect(await codeOf(find(start + 2_000_000))).toBe('chain_unavailable')
  })

  test.each([999, 500, 10, 1])('findEvents: a node that allows %d blocks per request', async (maxLogBlocks) => {
    const start = Date.now()
    await chain.send((await publish(chain, 0)).raw)
    node.mine(60)
    await chain.send((await publish(chain, 1)).raw)
    node.mine(60)
    node.mine(maxLogBlocks > 100 ? 1500 : 0)
    node.setLimits({ maxLogBlocks })
    expect(await chain.findEvents({ proofs: [proofOf(1), proofOf(2)], sinceMs: start })).toEqual([
      proofOf(1),
      proofOf(2),
    ])
  })

  test('findEvents: stops after a few rejections', async () => {
    node.mine(5000)
    node.setLimits({ maxLogBlocks: 0 })
    const failure = await errorOf(chain.findEvents({ proofs: [proofOf(1)], sinceMs: 0 }))
    expect(failure).toMatchObject({
      code: 'chain_unavailable',
      details: expect.stringContaining('eth_getLogs: -32600'),
    })
    expect(node.requests.eth_getLogs).toBe(10)
  })

  test('findEvents: stops an endless search', async () => {
    node.mine(200)
    node.setLimits({ maxLogBlocks: 1 })
    // The time is over before the first of 200 requests.
    const failure = await errorOf(connect({ searchMs: 0 }).findEvents({ proofs: [proofOf(1)], sinceMs: 0 }))
    expect(failure).toMatchObject({ details: 'eth_getLogs: the search took too long' })
    expect(node.requests.eth_getLogs).toBeUndefined()
  })

  describe('checkpoints', () => {
    const root = new Uint8Array(32).fill(7)
    const block: Hex = `0x${'b1'.repeat(32)}`
    const event = { id: logId, size: 3, root: `0x${'07'.repeat(32)}`, block }

    async function advance() {
      node.registerLog(logId)
      const call = { to: node.logWitness, data: encodeAdvance({ id: logId, size: 3, root, block, consistency: [] }) }
      const { raw, hash } = await chain.sign({ ...call, nonce: 0, gas: 200_000n, ...(await chain.getFees()) })
      await chain.send(raw)
      node.mine()
      return hash
    }

    test('readLog: the head and the publisher, zero if the log is not registered', async () => {
      const read = () => chain.readLog({ contract: node.logWitness, id: logId })
      expect(await read()).toEqual({ size: 0, root: '00'.repeat(32), publisher: `0x${'00'.repeat(20)}` })
      await advance()
      expect(await read()).toEqual({ size: 3, root: '07'.repeat(32), publisher: account })
    })

    test.each([
      ['an account without code', account],
      ['another contract', contract],
    ] as const)('readLog: %s', async (_, address) => {
      expect(await codeOf(chain.readLog({ contract: address, id: logId }))).toBe('contract_missing')
    })

    test('findCheckpoints: of this log and size, since that time', async () => {
      const find = (changes: object) =>
        chain.findCheckpoints({ contract: node.logWitness, id: logId, size: 3, sinceMs: 0, ...changes })
      expect(await find({})).toEqual([])
      await advance()
      expect(await find({})).toEqual([event])
      for (const other of [{ size: 4 }, { id: block }, { contract }]) expect(await find(other)).toEqual([])
      node.reorg(1, { keep: 'none' })
      expect(await find({})).toEqual([])
    })

    test('getReceipt: only the events of the given contract', async () => {
      const hash = await advance()
      expect(await chain.getReceipt(hash, node.logWitness)).toMatchObject({ checkpoints: [event], events: [] })
      expect(await chain.getReceipt(hash)).toMatchObject({ checkpoints: [], events: [] })
    })
  })

  test('getHead and getBlockHash', async () => {
    expect(await chain.getHead()).toEqual({ number: 0, finalized: 0 })
    node.mine(10)
    expect(await chain.getHead()).toEqual({ number: 10, finalized: 2 })
    expect(await chain.getBlockHash(10)).toBe(node.head.hash)
    expect(await chain.getBlockHash(11)).toBeUndefined()
  })

  test('getHead: a chain without finality', async () => {
    const other = await startFakeChain({ finalityDepth: 'none' })
    try {
      expect(await connect({ rpcUrl: other.url }).getHead()).toEqual({ number: 0, finalized: undefined })
    } finally {
      await other.stop()
    }
  })

  describe.each(['down', 'error', 'garbage', 'truncated', 'oversized'] as const)('a node that is %s', (fault) => {
    test.each(methodNames)('%s: unavailable, after one request', async (name) => {
      const { raw } = await publish(chain, 0)
      node.setFault(fault)
      expect(await codeOf(methodsOf(chain, raw)[name]?.() as Promise<unknown>)).toBe('chain_unavailable')
      const requests = Object.values(node.requests).reduce((sum, count) => sum + count, 0)
      expect(requests).toBe(1)
      // The node may have executed the request.
      expect(node.mempool()).toHaveLength(fault === 'truncated' && name === 'send' ? 1 : 0)
    })
  })

  test.each(methodNames)('%s times out for a slow node', async (name) => {
    const { raw } = await publish(chain, 0)
    node.setFault('slow', { delayMs: 3_600_000 })
    const call = methodsOf(connect({ timeoutMs: 20 }), raw)[name]?.() as Promise<unknown>
    expect(await errorOf(call)).toMatchObject({ details: expect.stringContaining('timed out') })
  })

  test('waits for a node that is slow but in time', async () => {
    node.setFault('slow', { delayMs: 1 })
    expect(await chain.getNonce('latest')).toBe(0)
  })

  test('reset-after-accept: the outcome is unknown, and sending again is safe', async () => {
    const { raw } = await publish(chain, 0)
    node.setFault('reset-after-accept', { count: 1 })
    expect(await codeOf(chain.send(raw))).toBe('chain_unavailable')
    await chain.send(raw)
    node.mine()
    expect(node.events()).toHaveLength(1)
  })

  test('wrong-hash', async () => {
    node.setFault('wrong-hash')
    expect(await errorOf(chain.send((await publish(chain, 0)).raw))).toMatchObject({
      code: 'chain_unavailable',
      details: 'eth_sendRawTransaction: another hash',
    })
  })

  test('no-receipts: a lagging node has none', async () => {
    const { raw, hash } = await publish(chain, 0)
    await chain.send(raw)
    node.mine()
    node.setFault('no-receipts', { count: 1 })
    expect(await chain.getReceipt(hash)).toBeUndefined()
    expect(await chain.getReceipt(hash)).toBeDefined()
  })

  test('lies-mined: the block hash reveals the lie', async () => {
    const { raw, hash } = await publish(chain, 0)
    await chain.send(raw)
    node.setFault('lies-mined')
    const receipt = await chain.getReceipt(hash)
    expect(receipt?.isSuccess).toBe(true)
    expect(await chain.getBlockHash(receipt?.blockNumber ?? -1)).not.toBe(receipt?.blockHash)
  })

  test('connection refused', async () => {
    await node.stop()
    expect(await errorOf(chain.getNonce('latest'))).toMatchObject({
      code: 'chain_unavailable',
      details: 'eth_getTransactionCount: ECONNREFUSED',
    })
  })
})

describe('against a node that answers anything', () => {
  type Respond = (
    request: { method: string; params: unknown[] },
    response: ServerResponse,
    raw: IncomingMessage,
  ) => void
  let respond: Respond
  let requests: { method: string; url: string | undefined; authorization: string | undefined }[]
  let origin: string
  let server: ReturnType<typeof createServer>

  beforeEach(async () => {
    requests = []
    server = createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      const body = JSON.parse(text) as { method: string; params: unknown[] }
      requests.push({ method: body.method, url: request.url, authorization: request.headers.authorization })
      respond(body, response, request)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  })

  const connect = (parameters: Partial<CreateViemChainParameters> = {}) =>
    createViemChain({ rpcUrl: `http://${origin}`, chainId: 31_337, contract, privateKey, ...parameters })
  const reply = (toBody: (request: { method: string; params: unknown[] }) => object) => {
    respond = (request, response) => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...toBody(request) }))
  }
  const answer = (results: Record<string, unknown>) => reply(({ method }) => ({ result: results[method] }))
  const refuse = (error: unknown, results: Record<string, unknown> = {}) =>
    reply(({ method }) => (method in results ? { result: results[method] } : { error }))
  const hash: Hex = `0x${'ab'.repeat(32)}`
  const blockHash: Hex = `0x${'cd'.repeat(32)}`

  test.each(['0', '0x', '0xzz', '-0x1', 1, null, [], {}, '0x20000000000000', `0x${'f'.repeat(65)}`])(
    'a nonce of %j',
    async (value) => {
      answer({ eth_getTransactionCount: value })
      expect(await codeOf(connect().getNonce('latest'))).toBe('chain_unavailable')
    },
  )

  test.each([
    'null',
    '[]',
    '{}',
    '7',
    '"0x1"',
    '',
    '{"error":{}}',
    '{"error":{"code":"x","message":"y"}}',
    '{"error":"no"}',
  ])('rejects the body %s', async (body) => {
    respond = (_request, response) => response.end(body)
    expect(await codeOf(connect().getNonce('latest'))).toBe('chain_unavailable')
  })

  test.each([204, 301, 307, 400, 401, 403, 404, 429, 500, 502, 503])('status %i', async (status) => {
    respond = (_request, response) =>
      response.writeHead(status, { location: `http://${origin}/elsewhere` }).end(status === 204 ? undefined : 'no')
    expect(await codeOf(connect().getNonce('latest'))).toBe('chain_unavailable')
    expect(requests).toHaveLength(1)
  })

  test('aborts a body that never ends', async () => {
    respond = (_request, response) => response.write('{"jsonrpc":"2.0",')
    expect(await errorOf(connect({ timeoutMs: 50 }).getNonce('latest'))).toMatchObject({
      details: 'eth_getTransactionCount: timed out',
    })
  })

  test('reads an answer of the maximum size, but not one byte more', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x7' })
    respond = (_request, response) => response.end(body)
    expect(await connect({ maxAnswerBytes: body.length }).getNonce('latest')).toBe(7)
    expect(await errorOf(connect({ maxAnswerBytes: body.length - 1 }).getNonce('latest'))).toMatchObject({
      details: 'eth_getTransactionCount: too large',
    })
  })

  const block = { number: '0x5', hash: blockHash, baseFeePerGas: '0x7' }

  test.each([
    ['no block', null],
    ['a list', []],
    ['no number', { ...block, number: null }],
    ['a short hash', { ...block, hash: '0xcd' }],
    ['no hash', { ...block, hash: null }],
    ['a number beyond all', { ...block, number: '0xffffffffffffffff' }],
  ])('a latest block with %s', async (_name, value) => {
    answer({ eth_getBlockByNumber: value })
    expect(await codeOf(connect().getHead())).toBe('chain_unavailable')
    expect(await codeOf(connect().getFees())).toBe('chain_unavailable')
  })

  test('rejects another block than the requested one', async () => {
    answer({ eth_getBlockByNumber: block })
    expect(await connect().getBlockHash(5)).toBe(blockHash)
    expect(await codeOf(connect().getBlockHash(6))).toBe('chain_unavailable')
  })

  test('a finalized block is never above the head', async () => {
    reply(({ params }) => ({ result: { ...block, number: params[0] === 'latest' ? '0x5' : '0x9' } }))
    expect(await connect().getHead()).toEqual({ number: 5, finalized: 5 })
  })

  test.each([
    [-39001, 'finalized block not found', undefined],
    [-32602, 'invalid block tag', undefined],
    [-32005, 'limit exceeded', 'chain_unavailable'],
    [-32603, 'internal error', 'chain_unavailable'],
    [-32000, 'request timed out', 'chain_unavailable'],
  ])('asked for the finalized block, the node says %i %s', async (code, message, expected) => {
    reply(({ params }) => (params[0] === 'latest' ? { result: block } : { error: { code, message } }))
    const head = connect().getHead()
    if (expected === undefined) expect(await head).toEqual({ number: 5, finalized: undefined })
    else expect(await codeOf(head)).toBe(expected)
  })

  test.each([
    ['an error', { error: { code: -32000, message: 'finalized block not found' } }],
    ['null', { result: null }],
  ])(
    '%s for the finalized block, after one was reported: that one stays, and depth does not count in its place',
    async (_name, absent) => {
      let finalized: object = { result: { ...block, number: '0x3' } }
      let latest = '0x5'
      reply(({ params }) => (params[0] === 'latest' ? { result: { ...block, number: latest } } : finalized))
      const chain = connect()
      expect(await chain.getHead()).toEqual({ number: 5, finalized: 3 })
      finalized = absent
      latest = '0x99'
      expect(await chain.getHead()).toEqual({ number: 0x99, finalized: 3 })
      finalized = { result: { ...block, number: '0x90' } }
      expect(await chain.getHead()).toEqual({ number: 0x99, finalized: 0x90 })
    },
  )

  test('a chain without a base fee', async () => {
    answer({ eth_getBlockByNumber: { number: '0x5', hash: blockHash } })
    expect(await codeOf(connect().getFees())).toBe('chain_unavailable')
  })

  test('a chain without tips', async () => {
    const error = { code: -32601, message: 'the method does not exist' }
    refuse(error, { eth_getBlockByNumber: block, eth_gasPrice: '0xa' })
    expect(await connect().getFees()).toEqual({ maxFeePerGas: 17n, maxPriorityFeePerGas: 3n })
    refuse(error, { eth_getBlockByNumber: block, eth_gasPrice: '0x1' })
    expect(await connect().getFees()).toEqual({ maxFeePerGas: 14n, maxPriorityFeePerGas: 0n })
    refuse({ code: -32005, message: 'limit exceeded' }, { eth_getBlockByNumber: block, eth_gasPrice: '0xa' })
    expect(await codeOf(connect().getFees())).toBe('chain_unavailable')
  })

  test('rejects fees above the limit', async () => {
    answer({ eth_getBlockByNumber: block, eth_maxPriorityFeePerGas: `0x${(10n ** 13n + 1n).toString(16)}` })
    expect(await codeOf(connect().getFees())).toBe('chain_unavailable')
    answer({ eth_getBlockByNumber: { ...block, baseFeePerGas: '0xffffffffffffffff' }, eth_maxPriorityFeePerGas: '0x1' })
    expect(await codeOf(connect().getFees())).toBe('chain_unavailable')
  })

  const ready = { eth_chainId: '0x7a69', eth_getCode: '0x60', eth_call: `0x${'0'.repeat(24)}${account.slice(2)}` }

  test.each([
    ['nothing', { eth_call: '0x' }, 'contract_missing'],
    ['two words', { eth_call: `0x${'0'.repeat(128)}` }, 'contract_missing'],
    ['bits before the address', { eth_call: `0x${'f'.repeat(64)}` }, 'contract_missing'],
    ['not bytes', { eth_call: 'publisher' }, 'chain_unavailable'],
    ['no code', { eth_getCode: '0x' }, 'contract_missing'],
    ['invalid code', { eth_getCode: null }, 'chain_unavailable'],
    ['an invalid chain id', { eth_chainId: 31_337 }, 'chain_unavailable'],
  ])('assertReady: %s', async (_name, changed, code) => {
    answer(ready)
    await expect(connect().assertReady()).resolves.toBeUndefined()
    answer({ ...ready, ...changed })
    expect(await codeOf(connect().assertReady())).toBe(code)
  })

  test('assertReady: a contract without a publisher, and a busy node', async () => {
    const { eth_call: _, ...others } = ready
    refuse({ code: 3, message: 'execution reverted', data: '0x' }, others)
    expect(await codeOf(connect().assertReady())).toBe('contract_missing')
    refuse({ code: -32005, message: 'limit exceeded' }, others)
    expect(await codeOf(connect().assertReady())).toBe('chain_unavailable')
  })

  test.each([
    ['nothing', { result: '0x' }, 'contract_missing'],
    ['too few words', { result: `0x${'0'.repeat(64)}` }, 'contract_missing'],
    ['too many words', { result: `0x${'0'.repeat(192)}` }, 'contract_missing'],
    ['a size beyond all', { result: `0x${'f'.repeat(128)}` }, 'chain_unavailable'],
    ['not bytes', { result: 'head' }, 'chain_unavailable'],
    ['null', { result: null }, 'chain_unavailable'],
    ['a revert', { error: { code: 3, message: 'execution reverted', data: '0x' } }, 'contract_missing'],
    ['a busy node', { error: { code: -32005, message: 'limit exceeded' } }, 'chain_unavailable'],
  ])('readLog: %s', async (_name, body, code) => {
    // The second request asks for the publisher, in one word.
    reply(() => (requests.length === 1 ? body : { result: `0x${'0'.repeat(64)}` }))
    expect(await codeOf(connect().readLog({ contract: logWitness, id: logId }))).toBe(code)
  })

  test('send: every verdict, and a check whether the node knows the transaction', async () => {
    const chain = connect()
    const signed = await publish(chain, 0)
    for (const [message, code] of [
      ['nonce too low', 'nonce_too_low'],
      ['nonce too high', 'nonce_gap'],
      ['transaction underpriced', 'underpriced'],
      ['insufficient funds', 'insufficient_funds'],
      ['oversized data', 'transaction_refused'],
    ] as const) {
      refuse({ code: -32000, message }, { eth_getTransactionByHash: null })
      expect(await codeOf(chain.send(signed.raw))).toBe(code)
      refuse({ code: -32000, message }, { eth_getTransactionByHash: { hash: signed.hash } })
      await expect(chain.send(signed.raw)).resolves.toBeUndefined()
      // Unknown is not the same as rejected.
      refuse({ code: -32000, message }, { eth_getTransactionByHash: { hash } })
      expect(await codeOf(chain.send(signed.raw))).toBe('chain_unavailable')
      refuse({ code: -32000, message })
      expect(await codeOf(chain.send(signed.raw))).toBe('chain_unavailable')
    }
  })

  test('send: hardhat returns an error for a revert that it mined', async () => {
    const chain = connect()
    const signed = await publish(chain, 0)
    const error = { code: -32603, message: 'VM Exception while processing transaction: reverted', data: { data: '0x' } }
    refuse(error, { eth_getTransactionByHash: { hash: signed.hash, blockNumber: '0x1' } })
    await expect(chain.send(signed.raw)).resolves.toBeUndefined()
  })

  test.each(['already known', 'ALREADY_EXISTS: already known', 'Known transaction: 0xab'])(
    'send: "%s" is as good as sent, without another question',
    async (message) => {
      refuse({ code: -32000, message })
      await expect(connect().send((await publish(connect(), 0)).raw)).resolves.toBeUndefined()
      expect(requests).toHaveLength(1)
    },
  )

  test.each([null, 7, '0xab', 'ok'])('send: rejects %j as a hash', async (value) => {
    answer({ eth_sendRawTransaction: value })
    expect(await codeOf(connect().send((await publish(connect(), 0)).raw))).toBe('chain_unavailable')
  })

  const { wallet, txHash, ipfsCid } = proofOf(1)
  const log = {
    address: contract,
    topics: [attestationPublishedTopic, `0x${wallet.slice(2).padStart(64, '0')}`, txHash],
    data: `0x${[
      '20'.padStart(64, '0'),
      ipfsCid.length.toString(16).padStart(64, '0'),
      Buffer.from(ipfsCid).toString('hex').padEnd(128, '0'),
    ].join('')}`,
    transactionHash: hash,
    blockHash,
    removed: false,
  }
  const receipt = {
    transactionHash: hash,
    blockHash,
    blockNumber: '0x5',
    status: '0x1',
    gasUsed: '0x5208',
    logs: [log],
  }
  const getReceipt = (value: unknown) => {
    answer({ eth_getTransactionReceipt: value })
    return connect().getReceipt(hash)
  }

  test('reads a receipt in upper or lower case', async () => {
    const expected = {
      hash,
      isSuccess: true,
      blockNumber: 5,
      blockHash,
      gasUsed: 21_000n,
      events: [{ wallet, txHash, ipfsCid }],
      checkpoints: [],
    }
    expect(await getReceipt(receipt)).toEqual(expected)
    const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`
    const shouting = { ...log, address: upper(contract), topics: log.topics.map(upper), blockHash: upper(blockHash) }
    expect(await getReceipt({ ...receipt, transactionHash: upper(hash), logs: [shouting] })).toEqual(expected)
  })

  test.each([
    ['another contract’s', { ...log, address: account }],
    ['one that a reorganisation removed', { ...log, removed: true }],
    ['another event of ours', { ...log, topics: [hash] }],
    ['one without topics', { ...log, topics: [] }],
    ['one without an address', { ...log, address: null }],
  ])('ignores a log: %s', async (_name, other) => {
    expect((await getReceipt({ ...receipt, logs: [other, log] }))?.events).toEqual([{ wallet, txHash, ipfsCid }])
  })

  test.each([
    ['of another transaction', { ...receipt, transactionHash: blockHash }],
    ['without a transaction', { ...receipt, transactionHash: undefined }],
    ['without a status', { ...receipt, status: undefined }],
    ['with a third status', { ...receipt, status: '0x2' }],
    ['of a revert with events', { ...receipt, status: '0x0' }],
    ['without logs', { ...receipt, logs: null }],
    ['with a log that is none', { ...receipt, logs: [null] }],
    ['with a log of another transaction', { ...receipt, logs: [{ ...log, transactionHash: blockHash }] }],
    ['with a log of another block', { ...receipt, logs: [{ ...log, blockHash: hash }] }],
    ['with a malformed event', { ...receipt, logs: [{ ...log, data: log.data.slice(0, -64) }] }],
    ['with an event without data', { ...receipt, logs: [{ ...log, data: undefined }] }],
    ['with a block number beyond all', { ...receipt, blockNumber: '0xffffffffffffffff' }],
    ['with gas beyond all', { ...receipt, gasUsed: '0xffffffffffffffff' }],
    ['without a block hash', { ...receipt, blockHash: '0x' }],
    ['that is a list', [receipt]],
    ['that is a text', 'receipt'],
  ])('a receipt %s', async (_name, value) => {
    expect(await codeOf(getReceipt(value))).toBe('chain_unavailable')
  })

  const checkpoint = {
    ...log,
    topics: [checkpointTopic, logId, toSizeTopic(3)],
    data: `0x${'07'.repeat(32)}${'b1'.repeat(32)}`,
  }

  test('reads a checkpoint next to events, and ignores one of another contract', async () => {
    const logs = [{ ...checkpoint, address: logWitness }, log, checkpoint, { ...checkpoint, removed: true }]
    expect(await getReceipt({ ...receipt, logs })).toMatchObject({
      events: [{ wallet, txHash, ipfsCid }],
      checkpoints: [{ id: logId, size: 3, root: `0x${'07'.repeat(32)}`, block: `0x${'b1'.repeat(32)}` }],
    })
  })

  test.each([
    ['without a size', { ...checkpoint, topics: checkpoint.topics.slice(0, 2) }],
    ['with a size beyond all', { ...checkpoint, topics: [checkpointTopic, logId, `0x${'f'.repeat(64)}`] }],
    ['with one word', { ...checkpoint, data: `0x${'07'.repeat(32)}` }],
    ['without data', { ...checkpoint, data: undefined }],
    ['of another transaction', { ...checkpoint, transactionHash: blockHash }],
  ])('rejects a checkpoint %s', async (_name, other) => {
    expect(await codeOf(getReceipt({ ...receipt, logs: [other] }))).toBe('chain_unavailable')
    if (_name === 'of another transaction') return
    answer({ eth_getBlockByNumber: { ...block, number: '0x0', timestamp: '0x0' }, eth_getLogs: [other] })
    const found = connect().findCheckpoints({ contract, id: logId, size: 3, sinceMs: 0 })
    expect(await codeOf(found)).toBe('chain_unavailable')
  })

  test('rejects a revert with a checkpoint', async () => {
    expect(await codeOf(getReceipt({ ...receipt, status: '0x0', logs: [checkpoint] }))).toBe('chain_unavailable')
  })

  test('ignores a receipt of a transaction in the mempool', async () => {
    expect(await getReceipt({ ...receipt, blockHash: null, blockNumber: null, logs: [] })).toBeUndefined()
  })

  describe('secrets', () => {
    const secrets = ['user-name', 'pass word', 'path-key-0123456789', 'query-key-0123456789']
    const url = () => `http://user-name:pass%20word@${origin}/v3/path-key-0123456789?key=query-key-0123456789`
    const everythingOf = (error: ChainError) =>
      [error.message, error.details, error.stack, JSON.stringify(error), String(error.cause)].join('\n')

    test('the URL is used with its credentials', async () => {
      answer({ eth_getTransactionCount: '0x7' })
      expect(await connect({ rpcUrl: url() }).getNonce('latest')).toBe(7)
      expect(requests).toEqual([
        {
          method: 'eth_getTransactionCount',
          url: '/v3/path-key-0123456789?key=query-key-0123456789',
          authorization: `Basic ${btoa('user-name:pass word')}`,
        },
      ])
    })

    test.each<[string, Respond]>([
      ['cut off', (_request, _response, { socket }) => socket.resetAndDestroy()],
      ['never answered', () => undefined],
      ['answered with a page', (_request, response) => response.end(`<p>${url()}</p>`)],
      ['answered with a status', (_request, response) => response.writeHead(403).end(`{"error":"${url()}"}`)],
      [
        'refused by a node that repeats it',
        (_request, response) =>
          response.end(
            JSON.stringify({
              error: { code: -32000, message: `bad ${url()} ${secrets.join(' ')} pass%20word ${origin}` },
            }),
          ),
      ],
    ])('no error contains the URL or the key: %s', async (_name, next) => {
      respond = next
      const chain = connect({ rpcUrl: url(), timeoutMs: 50 })
      const { raw } = await publish(chain, 0)
      for (const call of Object.values(methodsOf(chain, raw))) {
        const text = everythingOf(await errorOf(call()))
        for (const secret of [...secrets, 'pass%20word', origin, privateKey.slice(2)])
          expect(text).not.toContain(secret)
      }
    })

    test('shortens a node’s message to plain text', async () => {
      refuse({ code: -32000, message: `\u001b[31m\n${'x'.repeat(5000)}` }, { eth_getTransactionByHash: null })
      const { details } = await errorOf(connect().send((await publish(connect(), 0)).raw))
      expect(details).toMatch(/^eth_sendRawTransaction: -32000 \?\[31m\?x+$/)
      expect(details?.length).toBeLessThan(300)
    })

    test.each(['ftp://secret-0123456789', 'secret-0123456789', ''])('does not quote an invalid URL: %s', (rpcUrl) => {
      expect(() => connect({ rpcUrl })).toThrow(new TypeError('invalid RPC URL: expected http or https'))
    })

    test.each([`0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`, '0x1234', privateKey.slice(2), ''])(
      'does not quote an invalid key',
      (key) => {
        expect(() => connect({ privateKey: key as Hex })).toThrow(new TypeError('invalid publisher private key'))
      },
    )

    test('rejects an invalid contract address', () => {
      expect(() => connect({ contract: '0x12' })).toThrow(
        new TypeError('invalid contract address: expected 0x and 40 hex digits'),
      )
    })
  })
})
