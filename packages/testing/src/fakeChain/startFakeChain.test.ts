import { type Hex, parseAttestationPublished, serviceAttestationsAbi } from '@countersign/protocol'
import { createPublicClient, createWalletClient, defineChain, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeFunctionData } from 'viem/utils'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeChain, startFakeChain } from './startFakeChain.ts'

// Hardhat's first account, known to everybody.
const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const publisher = privateKeyToAccount(publisherKey)
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
