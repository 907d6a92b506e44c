import { createHash } from 'node:crypto'
import { computeTreeRoot, createConsistencyProof, createLeafReader } from '@countersign/log'
import { checkpointTopic, type Hex, parseCheckpointEvent, toSizeTopic } from '@countersign/protocol'
import { createPublicClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { bytesToHex, encodeErrorResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { expect, onTestFinished, test } from 'vitest'
import { logWitnessAbi } from './logWitness.ts'
import { type StartFakeChainParameters, startFakeChain } from './startFakeChain.ts'

// Hardhat's first two accounts, whose keys are public.
const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const otherKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const publisher: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
const other: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const invalidSize = (head: bigint) => encodeErrorResult({ abi: logWitnessAbi, errorName: 'InvalidSize', args: [head] })
const inconsistent = encodeErrorResult({ abi: logWitnessAbi, errorName: 'Inconsistent' })

const toBytes32 = (byte: number): Hex => `0x${byte.toString(16).padStart(64, '0')}`
const id = toBytes32(1)
const block = toBytes32(2)
const hashOf = (text: string) => createHash('sha256').update(text).digest()
const readTree = createLeafReader(Array.from({ length: 20 }, (_, index) => hashOf(`leaf ${index}`)))
const rootOf = (size: number) => bytesToHex(computeTreeRoot(readTree, size))
const proofOf = (oldSize: number, size: number) =>
  createConsistencyProof(readTree, { oldSize, size }).map((hash) => bytesToHex(hash))

type Advance = { log?: Hex; size: number; from?: number; root?: Hex; proof?: Hex[] }

function encodeAdvance({ log = id, size, from = 0, root = rootOf(size), proof = proofOf(from, size) }: Advance): Hex {
  return encodeFunctionData({
    abi: logWitnessAbi,
    functionName: 'advance',
    args: [log, BigInt(size), root, block, proof],
  })
}

async function start(parameters: StartFakeChainParameters = { logs: [{ id }] }) {
  const chain = await startFakeChain(parameters)
  onTestFinished(() => chain.stop())
  const client = createPublicClient({ transport: http(chain.url, { fetchFn: chain.fetch }), cacheTime: 0 })
  const to = chain.logWitness

  async function request(method: string, params: unknown[]) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const { result, error } = (await (await chain.fetch(chain.url, { method: 'POST', body })).json()) as {
      result?: unknown
      error?: { code: number; data?: Hex }
    }
    return error ?? result
  }

  return {
    chain,
    client,
    request,
    readHead: (options: { blockNumber?: bigint; blockTag?: 'finalized' } = {}) =>
      client.readContract({ address: to, abi: logWitnessAbi, functionName: 'head', args: [id], ...options }),
    estimate: (advance: Advance, from: Hex = publisher) =>
      request('eth_estimateGas', [{ from, to, data: encodeAdvance(advance) }]),
    /** Mines a transaction in a separate block. */
    advance: (advance: Advance, privateKey: Hex = publisherKey) =>
      chain.sendFromElsewhere({ privateKey, to, data: encodeAdvance(advance) }),
    /** Adds a transaction to the mempool. */
    async submit(nonce: number, advance: Advance) {
      const fees = { maxFeePerGas: 3n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n }
      const fields = { chainId: chain.chainId, nonce, to, data: encodeAdvance(advance), gas: 200_000n, ...fees }
      const raw = await privateKeyToAccount(publisherKey).signTransaction({ type: 'eip1559', ...fields })
      return await request('eth_sendRawTransaction', [raw])
    },
  }
}

test('advances to any first size, then by consistency proofs', async () => {
  const { chain, readHead, advance } = await start()
  expect(await readHead()).toEqual([0n, toBytes32(0)])
  const hashes = [await advance({ size: 3 }), await advance({ from: 3, size: 4 }), await advance({ from: 4, size: 11 })]
  expect(await readHead()).toEqual([11n, rootOf(11)])
  expect(chain.checkpoints()).toEqual(
    [3, 4, 11].map((size, index) => ({
      ...{ id, size, root: rootOf(size), block },
      ...{ blockNumber: index + 1, blockHash: expect.any(String), transactionHash: hashes[index] },
    })),
  )
  expect(chain.events()).toEqual([])
})

test('the events and receipts decode, and filters select the contract, the log and the size', async () => {
  const { chain, client, advance } = await start({ logs: [{ id }, { id: toBytes32(9) }] })
  const data = encodeFunctionData({
    abi: parseAbi(['function publish(address, bytes32, string)']),
    args: [other, toBytes32(7), 'bafkrei'],
  })
  const published = await chain.sendFromElsewhere({ privateKey: publisherKey, to: chain.contract, data })
  const first = await advance({ size: 3 })
  const second = await advance({ from: 3, size: 5 })
  const elsewhere = await advance({ log: toBytes32(9), size: 8 })

  const { logs } = await client.getTransactionReceipt({ hash: first })
  expect(logs).toMatchObject([{ address: chain.logWitness, logIndex: 0 }])
  expect(logs.map((log) => parseCheckpointEvent(log))).toEqual([{ id, size: 3, root: rootOf(3), block }])
  expect((await client.getTransactionReceipt({ hash: published })).logs).toMatchObject([{ address: chain.contract }])
  expect(chain.events()).toMatchObject([{ transactionHash: published }])
  expect(chain.checkpoints()).toMatchObject([first, second, elsewhere].map((transactionHash) => ({ transactionHash })))

  const search = async (filter: object) => {
    const found = await client.request({
      method: 'eth_getLogs',
      params: [{ fromBlock: '0x0', toBlock: 'latest', ...filter }],
    })
    return found.map(({ transactionHash }) => transactionHash)
  }
  expect(await search({})).toEqual([published, first, second, elsewhere])
  expect(await search({ address: chain.contract })).toEqual([published])
  expect(await search({ address: chain.logWitness, topics: [checkpointTopic, id] })).toEqual([first, second])
  expect(await search({ address: chain.logWitness, topics: [checkpointTopic, null, toSizeTopic(5)] })).toEqual([second])
})

test('returns the publisher, and reverts for other accounts and unregistered logs', async () => {
  const { chain, client, estimate } = await start({ publisher, logs: [{ id, publisher: other }] })
  const readPublisher = (log: Hex) =>
    client.readContract({ address: chain.logWitness, abi: logWitnessAbi, functionName: 'publisher', args: [log] })
  const notPublisher = (from: Hex) => ({
    code: 3,
    data: encodeErrorResult({ abi: logWitnessAbi, errorName: 'NotPublisher', args: [from] }),
  })
  expect((await readPublisher(id)).toLowerCase()).toBe(other)
  expect(await readPublisher(block)).toBe('0x0000000000000000000000000000000000000000')
  expect(await estimate({ size: 3 })).toMatchObject(notPublisher(publisher))
  expect(await estimate({ log: block, size: 3 }, other)).toMatchObject(notPublisher(other))
  chain.registerLog(id)
  chain.registerLog(block, other)
  expect(await estimate({ size: 3 })).toEqual(expect.any(String))
  expect(await estimate({ log: block, size: 3 }, other)).toEqual(expect.any(String))
})

test.each<[string, Advance, Hex]>([
  ['size 0', { size: 0, root: rootOf(1), proof: [] }, invalidSize(5n)],
  ['a size below the head', { size: 4, proof: [] }, invalidSize(5n)],
  ['another root at the same size', { size: 5, root: rootOf(6), proof: [] }, inconsistent],
  ['a proof at the same size', { size: 5, proof: [rootOf(1)] }, inconsistent],
  ['no proof', { size: 8, proof: [] }, inconsistent],
  ['the proof of another head', { from: 6, size: 8 }, inconsistent],
  ['another root', { from: 5, size: 8, root: rootOf(7) }, inconsistent],
])('reverts for %s', async (_, change, data) => {
  const { chain, estimate, advance, readHead } = await start()
  await advance({ size: 5 })
  expect(await estimate(change)).toMatchObject({ code: 3, data })
  await advance(change)
  expect(chain.transactions().at(-1)).toMatchObject({ isSuccess: false })
  expect(await readHead()).toEqual([5n, rootOf(5)])
})

test('reverts for a first checkpoint of size 0 or with a proof', async () => {
  const { estimate } = await start()
  expect(await estimate({ size: 0, root: rootOf(1), proof: [] })).toMatchObject({ data: invalidSize(0n) })
  expect(await estimate({ size: 2, proof: [rootOf(1)] })).toMatchObject({ data: inconsistent })
})

test('the same checkpoint again succeeds without an event', async () => {
  const { chain, advance } = await start()
  await advance({ size: 5 })
  await advance({ from: 5, size: 5 })
  expect(chain.transactions()).toMatchObject([{ isSuccess: true }, { isSuccess: true }])
  expect(chain.checkpoints()).toHaveLength(1)
})

test('a transaction starts from the head that the ones before it in its block leave', async () => {
  const { chain, submit, readHead } = await start()
  await submit(0, { size: 3 })
  await submit(1, { from: 3, size: 5 })
  await submit(2, { from: 3, size: 8 })
  chain.mine()
  expect(chain.transactions().map(({ isSuccess }) => isSuccess)).toEqual([true, true, false])
  expect(await readHead()).toEqual([5n, rootOf(5)])
})

test('a reorganization rolls the head back, and the transactions run again', async () => {
  const { chain, submit, advance, readHead } = await start()
  await advance({ size: 3 })
  await submit(1, { from: 3, size: 5 })
  chain.mine()
  chain.reorg(1)
  expect(await readHead()).toEqual([3n, rootOf(3)])
  expect(chain.checkpoints()).toMatchObject([{ size: 3 }])
  await advance({ from: 3, size: 4 }, publisherKey)
  expect(chain.mempool()).toEqual([])
  expect(await readHead()).toEqual([4n, rootOf(4)])
  chain.reorg(2)
  chain.mine()
  expect(await readHead()).toEqual([4n, rootOf(4)])
  chain.reorg(chain.head.number - 1, { keep: 'none' })
  expect(await readHead()).toEqual([3n, rootOf(3)])
})

test('a transaction from before a reorganization reverts if its head is gone', async () => {
  const { chain, submit, advance, readHead } = await start()
  chain.registerLog(id, other)
  await advance({ size: 3 }, otherKey)
  chain.registerLog(id)
  await submit(0, { from: 3, size: 5 })
  chain.mine()
  chain.reorg(2, { keep: 'none' })
  await submit(0, { from: 3, size: 5 })
  chain.mine()
  expect(chain.transactions()).toMatchObject([{ isSuccess: false }])
  expect(await readHead()).toEqual([0n, toBytes32(0)])
})

test('the head at an earlier block is the head of that time', async () => {
  const { chain, advance, readHead } = await start({ finalityDepth: 2, logs: [{ id }] })
  await advance({ size: 3 })
  await advance({ from: 3, size: 5 })
  chain.mine()
  expect(await readHead({ blockTag: 'finalized' })).toEqual([3n, rootOf(3)])
  expect(await readHead({ blockNumber: 2n })).toEqual([5n, rootOf(5)])
  await expect(readHead({ blockNumber: 9n })).rejects.toThrow('header not found')
})

test('an advance needs the estimated gas', async () => {
  const { chain, request, estimate, advance } = await start()
  expect(await request('eth_getCode', [chain.logWitness, 'latest'])).not.toBe('0x')
  const gas = await estimate({ size: 3 })
  await advance({ size: 3 })
  expect(chain.transactions()).toMatchObject([{ gasUsed: BigInt(gas as Hex) }])
})
