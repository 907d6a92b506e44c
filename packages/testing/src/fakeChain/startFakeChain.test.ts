import { setImmediate } from 'node:timers/promises'
import { type Hex, parseAttestationPublished, serviceAttestationsAbi } from '@countersign/protocol'
import { createPublicClient, createWalletClient, defineChain, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeFunctionData, keccak256, serializeTransaction } from 'viem/utils'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeChain, startFakeChain } from './startFakeChain.ts'

// Hardhat's first two accounts, known to everybody.
const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const strangerKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const publisher = privateKeyToAccount(publisherKey)
const stranger = privateKeyToAccount(strangerKey)
const address = publisher.address.toLowerCase() as Hex

const gwei = 10n ** 9n
const proofOf = (byte: number) => ({
  wallet: `0x${byte.toString(16).padStart(40, '0')}` as Hex,
  txHash: `0x${byte.toString(16).padStart(64, '0')}` as Hex,
  ipfsCid: `bafkrei${'a'.repeat(50)}${byte}`,
})

let chain: FakeChain
beforeEach(async () => {
  chain = await startFakeChain()
})
afterEach(() => chain.stop())

const definition = (url = chain.url) =>
  defineChain({
    id: chain.chainId,
    name: 'fake',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
const publicClient = (options: { batch?: boolean } = {}) =>
  createPublicClient({ chain: definition(), transport: http(chain.url, { retryCount: 0, ...options }) })
const walletClient = (account = publisher) =>
  createWalletClient({ account, chain: definition(), transport: http(chain.url, { retryCount: 0 }) })

type Parameters = { nonce: number; byte?: number; fee?: bigint; tip?: bigint; gas?: bigint; account?: typeof publisher }

function sign({
  nonce,
  byte = nonce + 1,
  fee = 3n * gwei,
  tip = gwei,
  gas = 200_000n,
  account = publisher,
}: Parameters) {
  const { wallet, txHash, ipfsCid } = proofOf(byte)
  return account.signTransaction({
    type: 'eip1559',
    chainId: chain.chainId,
    nonce,
    to: chain.contract,
    data: encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publish', args: [wallet, txHash, ipfsCid] }),
    gas,
    maxFeePerGas: fee,
    maxPriorityFeePerGas: tip,
  })
}

async function rpc(method: string, params: unknown[] = []) {
  const response = await fetch(chain.url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  return (await response.json()) as { id: number; result?: unknown; error?: { code: number; message: string } }
}

async function send(parameters: Parameters): Promise<Hex> {
  const { result, error } = await rpc('eth_sendRawTransaction', [await sign(parameters)])
  if (error !== undefined) throw new Error(error.message)
  return result as Hex
}

const nonces = () => chain.mempool().map(({ nonce }) => nonce)

test('a viem wallet client publishes, and a viem public client reads the event', async () => {
  const hash = await walletClient().writeContract({
    address: chain.contract,
    abi: serviceAttestationsAbi,
    functionName: 'publishBatch',
    args: [[proofOf(1), proofOf(2)]],
  })
  expect(nonces()).toEqual([0])
  const client = publicClient()
  expect(await client.getTransactionCount({ address, blockTag: 'latest' })).toBe(0)
  expect(await client.getTransactionCount({ address, blockTag: 'pending' })).toBe(1)
  expect((await client.getTransaction({ hash })).blockHash).toBeNull()
  chain.mine()
  const receipt = await client.waitForTransactionReceipt({ hash, pollingInterval: 1 })
  expect(receipt.status).toBe('success')
  expect(receipt.logs.map((log) => parseAttestationPublished(log))).toEqual([proofOf(1), proofOf(2)])
  expect(receipt.logs.map(({ logIndex }) => logIndex)).toEqual([0, 1])
  const events = await client.getContractEvents({
    address: chain.contract,
    abi: serviceAttestationsAbi,
    eventName: 'AttestationPublished',
    args: { txHash: proofOf(2).txHash },
    fromBlock: 0n,
  })
  expect(events.map(({ args }) => args.ipfsCid)).toEqual([proofOf(2).ipfsCid])
  expect(chain.events().map(({ wallet, blockNumber }) => [wallet, blockNumber])).toEqual([
    [proofOf(1).wallet, 1],
    [proofOf(2).wallet, 1],
  ])
  expect(await client.getBalance({ address })).toBe(10_000n * 10n ** 18n - receipt.gasUsed * receipt.effectiveGasPrice)
  expect((await client.getTransaction({ hash })).from.toLowerCase()).toBe(address)
})

test('a viem client reads blocks, fees and the contract, in batches too', async () => {
  chain.mine(10)
  const client = publicClient({ batch: true })
  const [latest, finalized, safe, pending, fees, code, none] = await Promise.all([
    client.getBlock(),
    client.getBlock({ blockTag: 'finalized' }),
    client.getBlock({ blockTag: 'safe' }),
    client.getBlock({ blockTag: 'pending' }),
    client.estimateFeesPerGas(),
    client.getCode({ address: chain.contract }),
    client.getCode({ address }),
  ])
  expect([latest.number, finalized.number, safe.number, pending.number]).toEqual([10n, 2n, 6n, 11n])
  expect(latest.hash).toBe(chain.head.hash)
  expect(pending.parentHash).toBe(latest.hash)
  expect(fees.maxPriorityFeePerGas).toBe(gwei)
  expect(code).not.toBe('0x')
  expect(none).toBeUndefined()
  const history = await client.getFeeHistory({ blockCount: 3, rewardPercentiles: [50] })
  expect([history.oldestBlock, history.baseFeePerGas.length, history.reward?.length]).toEqual([8n, 4, 3])
  expect(await rpc('eth_nothing')).toMatchObject({ id: 7, error: { code: -32601 } })
})

test('blocks hang together, and the same story has the same hashes', async () => {
  const other = await startFakeChain()
  try {
    const client = publicClient()
    chain.mine(3)
    other.mine(3)
    expect(chain.head).toEqual(other.head)
    const blocks = await Promise.all([0n, 1n, 2n, 3n].map((blockNumber) => client.getBlock({ blockNumber })))
    expect(blocks.slice(1).map(({ parentHash }) => parentHash)).toEqual(blocks.slice(0, 3).map(({ hash }) => hash))
    expect(new Set(blocks.map(({ hash }) => hash)).size).toBe(4)
  } finally {
    await other.stop()
  }
})

test('only the publisher publishes: another’s transaction is mined as a revert', async () => {
  const hash = await send({ nonce: 0, account: stranger })
  chain.mine()
  expect(chain.transactions()).toMatchObject([{ hash, isSuccess: false }])
  expect(chain.events()).toEqual([])
  chain.setPublisher(stranger.address)
  await send({ nonce: 1, account: stranger })
  chain.mine()
  expect(chain.events()).toHaveLength(1)
})

test('too little gas: mined, all gas used, no event', async () => {
  await send({ nonce: 0, gas: 24_000n })
  chain.mine()
  expect(chain.transactions()).toMatchObject([{ isSuccess: false, gasUsed: 24_000n }])
  expect(chain.events()).toEqual([])
})

test.each([
  ['no transaction', 'rlp', async () => '0x02c0'],
  ['not hex', 'invalid argument', async () => 'raw'],
  ['another type', 'type not supported', async () => `0x01${(await sign({ nonce: 0 })).slice(4)}`],
  ['bytes at the end', 'rlp', async () => `${await sign({ nonce: 0 })}00`],
  [
    'no signature',
    'rlp',
    async () => serializeTransaction({ type: 'eip1559', chainId: chain.chainId, nonce: 0, to: address, gas: 21_000n }),
  ],
])('%s is refused', async (_name, message, raw) => {
  expect((await rpc('eth_sendRawTransaction', [await raw()])).error?.message).toContain(message)
  expect(chain.mempool()).toEqual([])
})

test('another chain’s transaction is refused', async () => {
  const raw = await publisher.signTransaction({ type: 'eip1559', chainId: 1, nonce: 0, to: address, gas: 21_000n })
  expect((await rpc('eth_sendRawTransaction', [raw])).error?.message).toBe(
    'invalid chain id for signer: have 1 want 31337',
  )
})

test('the pool’s rules: known, too low a nonce, too little gas, too much, and too poor', async () => {
  await send({ nonce: 0 })
  await expect(send({ nonce: 0 })).rejects.toThrow('already known')
  chain.mine()
  await expect(send({ nonce: 0 })).rejects.toThrow('nonce too low: next nonce 1, tx nonce 0')
  await expect(send({ nonce: 1, gas: 21_000n })).rejects.toThrow('intrinsic gas too low')
  await expect(send({ nonce: 1, gas: 2n ** 24n + 1n })).rejects.toThrow('gas limit too high')
  chain.setBalance(address, 1n)
  await expect(send({ nonce: 1 })).rejects.toThrow('insufficient funds')
  expect(await publicClient().getBalance({ address })).toBe(1n)
})

test('a replacement needs 10 % more of both', async () => {
  await send({ nonce: 0, fee: 1000n * gwei, tip: 100n })
  await expect(send({ nonce: 0, fee: 1100n * gwei, tip: 109n })).rejects.toThrow('replacement transaction underpriced')
  await expect(send({ nonce: 0, fee: 1099n * gwei, tip: 110n })).rejects.toThrow('replacement transaction underpriced')
  const hash = await send({ nonce: 0, fee: 1100n * gwei, tip: 110n })
  expect(chain.mempool().map((item) => item.hash)).toEqual([hash])
})

test('transactions wait for their turn', async () => {
  await send({ nonce: 2 })
  await send({ nonce: 1 })
  chain.mine()
  expect(nonces()).toEqual([2, 1])
  expect(await publicClient().getTransactionCount({ address, blockTag: 'pending' })).toBe(0)
  await send({ nonce: 0 })
  expect(await publicClient().getTransactionCount({ address, blockTag: 'pending' })).toBe(3)
  chain.mine()
  expect(chain.transactions().map(({ nonce, blockNumber }) => [nonce, blockNumber])).toEqual([
    [0, 2],
    [1, 2],
    [2, 2],
  ])
  expect(await publicClient().getTransactionCount({ address, blockNumber: 1n })).toBe(0)
})

test('a gas spike: what pays less stays, until fees fall', async () => {
  await send({ nonce: 0, fee: 3n * gwei })
  chain.setBaseFee(4n * gwei)
  chain.mine()
  expect(nonces()).toEqual([0])
  expect((await publicClient().getBlock()).baseFeePerGas).toBe(4n * gwei)
  chain.setBaseFee(3n * gwei)
  chain.mine()
  expect(chain.transactions()).toHaveLength(1)
})

test('a node that checks the base fee refuses what pays less, after the nonce', async () => {
  await chain.stop()
  chain = await startFakeChain({ checksBaseFee: true })
  chain.setBaseFee(4n * gwei)
  await expect(send({ nonce: 0, fee: 4n * gwei - 1n })).rejects.toThrow('max fee per gas less than block base fee')
  await send({ nonce: 0, fee: 4n * gwei })
  chain.mine()
  await expect(send({ nonce: 0, fee: 4n * gwei - 1n })).rejects.toThrow('nonce too low')
})

test('a held mempool gives empty blocks', async () => {
  await send({ nonce: 0 })
  chain.holdMempool(true)
  chain.mine(2)
  expect([chain.head.number, chain.events().length]).toEqual([2, 0])
  chain.holdMempool(false)
  chain.mine()
  expect(chain.events()).toHaveLength(1)
})

test('a dropped transaction is gone', async () => {
  const hash = await send({ nonce: 0 })
  expect(chain.dropTransaction(hash)).toBe(true)
  expect(chain.dropTransaction(hash)).toBe(false)
  expect((await rpc('eth_getTransactionByHash', [hash])).result).toBeNull()
})

test('autoMine: a block for each transaction', async () => {
  await chain.stop()
  chain = await startFakeChain({ autoMine: true })
  await send({ nonce: 0 })
  await send({ nonce: 1 })
  expect(chain.events().map(({ blockNumber }) => blockNumber)).toEqual([1, 2])
})

test('a reorganisation: other blocks, one more of them, and the transactions wait again', async () => {
  const client = publicClient()
  await send({ nonce: 0 })
  chain.mine()
  const hash = await send({ nonce: 1 })
  chain.mine()
  const [kept, replaced] = await Promise.all([1n, 2n].map((blockNumber) => client.getBlock({ blockNumber })))
  const balance = await client.getBalance({ address })
  chain.reorg(1)
  expect(chain.head.number).toBe(3)
  expect((await client.getBlock({ blockNumber: 1n })).hash).toBe(kept?.hash)
  expect((await client.getBlock({ blockNumber: 2n })).hash).not.toBe(replaced?.hash)
  expect((await rpc('eth_getTransactionReceipt', [hash])).result).toBeNull()
  expect((await rpc('eth_getBlockByHash', [replaced?.hash, false])).result).toBeNull()
  expect(await client.getTransactionCount({ address })).toBe(1)
  expect(await client.getBalance({ address })).toBeGreaterThan(balance)
  expect(chain.events()).toHaveLength(1)
  expect(chain.mempool().map((item) => item.hash)).toEqual([hash])
  chain.mine()
  expect(chain.events().map(({ blockNumber }) => blockNumber)).toEqual([1, 4])
  expect(await client.getBalance({ address })).toBe(balance)
})

test('a reorganisation that forgets', async () => {
  await send({ nonce: 0 })
  chain.mine()
  await send({ nonce: 1 })
  chain.reorg(1, { keep: 'none' })
  expect(nonces()).toEqual([1])
  chain.mine()
  expect([chain.transactions(), nonces()]).toEqual([[], [1]])
  expect(() => chain.reorg(chain.head.number + 1)).toThrow(RangeError)
})

test('two reorganisations to the same height have different blocks', () => {
  chain.mine()
  const seen = new Set([chain.head.hash])
  chain.reorg(1)
  seen.add(chain.head.hash)
  chain.reorg(1)
  chain.reorg(2)
  seen.add(chain.head.hash)
  expect(seen.size).toBe(3)
})

test('revertFor: whatever publishes that proof reverts, estimates too, until it is undone', async () => {
  const undo = chain.revertFor(proofOf(2).txHash)
  const estimate = (byte: number) =>
    publicClient().estimateContractGas({
      account: publisher,
      address: chain.contract,
      abi: serviceAttestationsAbi,
      functionName: 'publishBatch',
      args: [[proofOf(1), proofOf(byte)]],
    })
  await expect(estimate(2)).rejects.toThrow('reverted')
  expect(await estimate(3)).toBeGreaterThan(21_000n)
  await send({ nonce: 0, byte: 2 })
  await send({ nonce: 1, byte: 3 })
  chain.mine()
  expect(chain.transactions().map(({ isSuccess }) => isSuccess)).toEqual([false, true])
  undo()
  expect(await estimate(2)).toBeGreaterThan(21_000n)
  chain.revertFor(({ wallet }) => wallet === proofOf(9).wallet)
  await expect(estimate(9)).rejects.toThrow('reverted')
})

test.each([
  ['ZeroWallet', { ...proofOf(1), wallet: proofOf(0).wallet }],
  ['ZeroTxHash', { ...proofOf(1), txHash: proofOf(0).txHash }],
  ['EmptyCid', { ...proofOf(1), ipfsCid: '' }],
  ['OversizedCid', { ...proofOf(1), ipfsCid: 'b'.repeat(257) }],
])('the contract’s own refusals: %s', async (name, { wallet, txHash, ipfsCid }) => {
  const data = encodeFunctionData({
    abi: serviceAttestationsAbi,
    functionName: 'publish',
    args: [wallet, txHash, ipfsCid],
  })
  const { error } = await rpc('eth_estimateGas', [{ from: address, to: chain.contract, data }])
  const types = name === 'OversizedCid' ? '(uint256,uint256)' : '(uint256)'
  const selector = keccak256(new TextEncoder().encode(name + types)).slice(0, 10)
  expect(error).toMatchObject({ code: 3, data: expect.stringMatching(new RegExp(`^${selector}`)) })
})

test('sendFromElsewhere uses a nonce up, whatever waits with it', async () => {
  await send({ nonce: 0 })
  await send({ nonce: 1 })
  const hash = await chain.sendFromElsewhere({ privateKey: publisherKey, nonce: 0 })
  expect(chain.transactions()).toMatchObject([{ hash, from: address, to: address, nonce: 0, isSuccess: true }])
  expect(nonces()).toEqual([1])
  await expect(chain.sendFromElsewhere({ privateKey: publisherKey, nonce: 0 })).rejects.toThrow(RangeError)
})

test('faults: down, error, garbage, truncated, oversized', async () => {
  chain.setFault('down')
  await expect(rpc('eth_chainId')).rejects.toThrow()
  chain.setFault('error')
  expect((await fetch(chain.url, { method: 'POST', body: '{}' })).status).toBe(500)
  for (const fault of ['garbage', 'truncated'] as const) {
    chain.setFault(fault)
    await expect(rpc('eth_chainId')).rejects.toThrow()
  }
  chain.setFault('oversized')
  expect((await (await fetch(chain.url, { method: 'POST', body: '{}' })).text()).length).toBeGreaterThan(16_777_216)
  chain.setFault()
  expect((await rpc('eth_chainId')).result).toBe('0x7a69')
  expect(chain.requests.eth_chainId).toBe(4)
})

test('fetch: answers as over the network, faults and an end included', async () => {
  const ask = (get: typeof fetch, body: string) => get(chain.url, { method: 'POST', body })
  const question = (method: string) => JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: [] })
  for (const body of [question('eth_chainId'), question('no_such'), `[${question('eth_blockNumber')}]`, '[]', '{']) {
    const [near, far] = await Promise.all([ask(chain.fetch, body), ask(fetch, body)])
    expect([near.status, await near.json()]).toEqual([far.status, await far.json()])
  }
  expect(chain.requests).toMatchObject({ eth_chainId: 2, no_such: 2, eth_blockNumber: 2 })
  chain.setFault('error', { count: 1 })
  expect((await ask(chain.fetch, question('eth_chainId'))).status).toBe(500)
  chain.setFault('down')
  await expect(ask(chain.fetch, question('eth_chainId'))).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
  chain.setFault()
  await chain.stop()
  await expect(ask(chain.fetch, question('eth_chainId'))).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
})

test('a fault can heal by itself, and can be for some methods only', async () => {
  chain.setFault('down', { count: 1, methods: ['eth_blockNumber'] })
  expect((await rpc('eth_chainId')).result).toBe('0x7a69')
  await expect(rpc('eth_blockNumber')).rejects.toThrow()
  expect((await rpc('eth_blockNumber')).result).toBe('0x0')
})

test('reset-after-accept: taken, but not told', async () => {
  chain.setFault('reset-after-accept')
  expect((await rpc('eth_chainId')).result).toBe('0x7a69')
  await expect(send({ nonce: 0 })).rejects.toThrow()
  expect(nonces()).toEqual([0])
})

test('wrong-hash, no-receipts, lies-mined', async () => {
  chain.setFault('wrong-hash')
  const wrong = await send({ nonce: 0 })
  const [{ hash } = { hash: wrong }] = chain.mempool()
  expect(hash).not.toBe(wrong)
  chain.setFault('lies-mined')
  const lie = (await rpc('eth_getTransactionReceipt', [hash])).result as { blockHash: Hex; status: string }
  expect(lie.status).toBe('0x1')
  expect((await rpc('eth_getBlockByHash', [lie.blockHash, false])).result).toBeNull()
  chain.mine()
  chain.setFault('no-receipts', { count: 1 })
  expect((await rpc('eth_getTransactionReceipt', [hash])).result).toBeNull()
  expect((await rpc('eth_getTransactionReceipt', [hash])).result).toMatchObject({ transactionHash: hash })
})

test('forget: one mined transaction is not known, nor its receipt; its events only if asked', async () => {
  const hash = await send({ nonce: 0 })
  chain.mine()
  const known = async () => ({
    transaction: (await rpc('eth_getTransactionByHash', [hash])).result !== null,
    receipt: (await rpc('eth_getTransactionReceipt', [hash])).result !== null,
    events: ((await rpc('eth_getLogs', [{ fromBlock: 'earliest' }])).result as unknown[]).length,
  })
  const remember = chain.forget(hash)
  expect(await known()).toEqual({ transaction: false, receipt: false, events: 1 })
  chain.forget(hash, { andEvents: true })
  expect(await known()).toEqual({ transaction: false, receipt: false, events: 0 })
  remember()
  expect(await known()).toEqual({ transaction: true, receipt: true, events: 1 })
})

test('limits: old blocks are gone, and events are searched in few blocks', async () => {
  chain.mine(20)
  chain.setLimits({ firstBlock: 10, maxLogBlocks: 5 })
  const logs = (fromBlock: string, toBlock: string) => rpc('eth_getLogs', [{ fromBlock, toBlock }])
  expect((await rpc('eth_getBlockByNumber', ['0x9', false])).error).toMatchObject({ code: 4444 })
  expect((await rpc('eth_getBlockByNumber', ['0xa', false])).result).toMatchObject({ number: '0xa' })
  expect((await logs('0x9', '0xa')).error).toMatchObject({ code: 4444 })
  expect((await logs('0xa', '0xf')).error).toMatchObject({ message: 'eth_getLogs takes at most 5 blocks' })
  expect((await logs('0xa', '0xe')).result).toEqual([])
})

test('slow: done at once, told late; and stopping does not wait for it', async () => {
  chain.setFault('slow', { delayMs: 1 })
  expect((await rpc('eth_chainId')).result).toBe('0x7a69')
  chain.setFault('slow', { delayMs: 3_600_000 })
  const waiting = expect(send({ nonce: 0 })).rejects.toThrow()
  while (chain.mempool().length === 0) await setImmediate()
  await chain.stop()
  await waiting
})

test('a chain without finality says so', async () => {
  await chain.stop()
  chain = await startFakeChain({ finalityDepth: 'none' })
  expect((await rpc('eth_getBlockByNumber', ['finalized', false])).error).toEqual({
    code: -39001,
    message: 'finalized block not found',
  })
})
