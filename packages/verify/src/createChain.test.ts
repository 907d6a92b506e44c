import type { RequestListener } from 'node:http'
import { attestationPublishedTopic } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { contract, issue, publishedBlock, publishingTx, toChain, toLog } from '../test/issues.ts'
import { findClosedUrl, serveRpc, startLoopback } from '../test/loopback.ts'
import { withCode } from '../test/withCode.ts'
import { createChain } from './createChain.ts'
import { createRpc } from './createRpc.ts'
import { createFetchBytes } from './fetchBytes.ts'

const deps = { fetchBytes: createFetchBytes({ fetch, timeoutMs: 5_000 }) }
const honest = await issue()
const { txHash, from } = honest.receipt.transaction
const query = {
  address: contract,
  topics: [attestationPublishedTopic, `0x${from.slice(2).padStart(64, '0')}`, txHash],
} as const

async function read(listener: RequestListener, fromBlock = 0) {
  const { url } = await startLoopback(listener)
  const rpc = createRpc(deps, { url })
  const chain = createChain(rpc, { contract, fromBlock, logContracts: [] })
  return { rpc, chain, reader: chain.reader }
}

const withChain = (changes: Readonly<Record<string, unknown>> = {}, fromBlock = 0) =>
  read(serveRpc(toChain(honest, changes)), fromBlock)

describe('a chain over JSON-RPC', () => {
  test('returns logs with the time of their block', async () => {
    const { reader } = await withChain()
    const { removed: _, ...log } = toLog(honest)
    expect(await reader.getLogs(query)).toEqual([
      { ...log, blockNumber: 16, blockTime: new Date('2026-03-01T12:00:02Z') },
    ])
  })

  test('returns the contract’s events for the request as publications', async () => {
    const eth_getLogs = [
      toLog(honest),
      toLog(honest, { address: `0x${'00'.repeat(20)}` }),
      toLog(honest, { data: '0x' }),
    ]
    const { chain, reader } = await withChain({ eth_getLogs })
    await reader.getLogs(query)
    const blockTime = new Date('2026-03-01T12:00:02Z')
    expect(chain.publications).toEqual([
      { txHash: publishingTx, blockNumber: publishedBlock, blockTime, ipfsCid: honest.cid },
    ])
  })

  test('does not use a node of another chain than the contract’s', async () => {
    const { url, requests } = await startLoopback(serveRpc(toChain(honest)))
    const chain = createChain(createRpc(deps, { url }), { contract, fromBlock: 0, chainId: 1, logContracts: [] })
    await expect(chain.reader.getLogs(query)).rejects.toThrow(withCode('chain_unavailable', 'of chain 31337, not 1'))
    expect(requests).toHaveLength(1)
  })

  test('requests logs from the contract’s first block', async () => {
    let filter: unknown
    const { reader } = await withChain(
      {
        eth_getLogs: (parameter: unknown) => {
          filter = parameter
          return []
        },
      },
      255,
    )
    expect(await reader.getLogs(query)).toEqual([])
    expect(filter).toEqual({ ...query, fromBlock: '0xff', toBlock: 'latest' })
  })

  test('ignores a log that a reorganisation removed', async () => {
    const { reader } = await withChain({ eth_getLogs: [toLog(honest, { removed: true })] })
    expect(await reader.getLogs(query)).toEqual([])
  })

  test.each<[string, unknown, string]>([
    ['mined', { hash: txHash, blockNumber: '0xf' }, 'mined'],
    ['pending', { hash: txHash, blockNumber: null }, 'pending'],
    ['not there', null, 'unknown'],
  ])('a transaction can be %s', async (_, transaction, state) => {
    const { reader } = await withChain({ eth_getTransactionByHash: transaction })
    expect(await reader.getTransactionState({ chainId: 31337, txHash })).toBe(state)
  })

  test('ignores what a node of another chain says about the transaction', async () => {
    const { reader } = await withChain({ eth_chainId: '0x1' })
    expect(await reader.getTransactionState({ chainId: 31337, txHash })).toBe('unknown')
  })

  const block = toChain(honest).eth_getBlockByNumber
  test.each<[string, Record<string, unknown>, string]>([
    ['logs that are not a list', { eth_getLogs: {} }, 'eth_getLogs is not a list'],
    ['logs that are null', { eth_getLogs: null }, 'eth_getLogs is not a list'],
    ['a log that is null', { eth_getLogs: [null] }, 'a log is not an object'],
    ['a log that is a list', { eth_getLogs: [[]] }, 'a log is not an object'],
    ['a short address', { eth_getLogs: [toLog(honest, { address: '0xab' })] }, 'an address is malformed'],
    ['topics as text', { eth_getLogs: [toLog(honest, { topics: '0x' })] }, 'topics are malformed'],
    ['a topic that is null', { eth_getLogs: [toLog(honest, { topics: [null] })] }, 'topics are malformed'],
    ['data as a number', { eth_getLogs: [toLog(honest, { data: 1 })] }, 'data is malformed'],
    ['no block hash', { eth_getLogs: [toLog(honest, { blockHash: null })] }, 'a block hash is malformed'],
    ['no transaction', { eth_getLogs: [toLog(honest, { transactionHash: '0x' })] }, 'a transaction hash is malformed'],
    [
      'a block number as a number',
      { eth_getLogs: [toLog(honest, { blockNumber: 16 })] },
      'blockNumber is not a number',
    ],
    ['a pending log', { eth_getLogs: [toLog(honest, { blockNumber: null })] }, 'blockNumber is not a number'],
    ['a padded number', { eth_getLogs: [toLog(honest, { blockNumber: '0x010' })] }, 'blockNumber is not a number'],
    ['a number too large', { eth_getLogs: [toLog(honest, { blockNumber: `0x${'f'.repeat(14)}` })] }, 'blockNumber'],
    ['hundreds of logs', { eth_getLogs: Array(17).fill(toLog(honest)) }, '17 logs'],
    ['no block', { eth_getBlockByNumber: null }, 'eth_getBlockByNumber is not a block'],
    [
      'another block',
      { eth_getBlockByNumber: { ...block, hash: `0x${'00'.repeat(32)}` } },
      'not the block of the event',
    ],
    ['a time as a number', { eth_getBlockByNumber: { ...block, timestamp: 1 } }, 'timestamp is not a number'],
    ['a time beyond all', { eth_getBlockByNumber: { ...block, timestamp: '0x1fffffffffffff' } }, 'is not a time'],
  ])('%s cannot be used', async (_, changes, details) => {
    const { reader } = await withChain(changes)
    await expect(reader.getLogs(query)).rejects.toThrow(withCode('chain_unavailable', details))
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['a chain id as a number', { eth_chainId: 1 }, 'eth_chainId is not a number'],
    ['a transaction as text', { eth_getTransactionByHash: 'mined' }, 'is not a transaction'],
    ['another transaction', { eth_getTransactionByHash: { hash: `0x${'00'.repeat(32)}` } }, 'is another transaction'],
    ['a transaction without a block', { eth_getTransactionByHash: { hash: txHash } }, 'blockNumber is not a number'],
    ['an error', { eth_getTransactionByHash: undefined }, 'returned no result'],
  ])('%s cannot be used', async (_, changes, details) => {
    const { reader } = await withChain(changes)
    await expect(reader.getTransactionState({ chainId: 31337, txHash })).rejects.toThrow(
      withCode('chain_unavailable', details),
    )
  })
})

describe('a node that does not speak JSON-RPC', () => {
  const answering =
    (text: string): RequestListener =>
    (_, response) =>
      response.end(text)

  test.each<[string, RequestListener, string]>([
    ['a web page', answering('<html>'), 'returned no JSON for eth_chainId'],
    ['nothing', answering(''), 'returned no JSON for eth_chainId'],
    ['a list', answering('[]'), 'returned no JSON-RPC'],
    ['another id', answering('{"jsonrpc":"2.0","id":2,"result":"0x1"}'), 'returned no JSON-RPC'],
    ['another version', answering('{"id":1,"result":"0x1"}'), 'returned no JSON-RPC'],
    ['no result', answering('{"jsonrpc":"2.0","id":1}'), 'returned no result'],
    ['a refusal', serveRpc({}), 'rejected eth_chainId: the method does not exist (-32601)'],
    ['status 500', (_, response) => response.writeHead(500).end(), 'returned 500'],
    ['a megabyte too much', answering(' '.repeat(1_048_577)), 'more than 1048576 bytes'],
  ])('%s is no answer', async (_, listener, details) => {
    const { rpc } = await read(listener)
    await expect(rpc.getChainId()).rejects.toThrow(withCode('chain_unavailable', details))
  })

  test('reports a node that is not there as unreachable', async () => {
    const rpc = createRpc(deps, { url: await findClosedUrl() })
    await expect(rpc.getChainId()).rejects.toThrow(withCode('chain_unavailable', 'could not be reached'))
  })
})

describe('the receipt of a transaction on the chain', () => {
  const find = async (logs: unknown) => {
    const { chain } = await withChain({ eth_getLogs: logs })
    return (await chain.findReceipt(txHash, async () => ({ bytes: undefined, problems: [] }))).cid
  }

  test('is found without knowing the wallet', async () => {
    let topics: unknown
    const answer = (filter: { topics: unknown }) => {
      topics = filter.topics
      return [toLog(honest)]
    }
    expect(await find(answer)).toBe(honest.cid)
    expect(topics).toEqual([attestationPublishedTopic, null, txHash])
  })

  test('counts once if published twice', async () => {
    expect(await find([toLog(honest), toLog(honest)])).toBe(honest.cid)
  })

  test('must be the only one, or the reader must choose', async () => {
    const other = toLog({ ...honest, cid: honest.cid.replace(/.$/, 'x') })
    await expect(find([toLog(honest), other])).rejects.toThrow(withCode('invalid_arguments', honest.cid))
  })

  test.each<[string, unknown[]]>([
    ['nothing', []],
    ['the event of another contract', [toLog(honest, { address: `0x${'00'.repeat(20)}` })]],
    [
      'the event of another transaction',
      [toLog(honest, { topics: [...query.topics.slice(0, 2), `0x${'00'.repeat(32)}`] })],
    ],
  ])('a node that sends %s has not found it', async (_, logs) => {
    await expect(find(logs)).rejects.toThrow(withCode('event_not_found', txHash))
  })

  test('an event without a CID does not hide one with a CID', async () => {
    expect(await find([toLog(honest, { data: '0x' }), toLog(honest)])).toBe(honest.cid)
  })

  test('only an event without a CID gives an error', async () => {
    await expect(find([toLog(honest, { data: '0x' })])).rejects.toThrow(withCode('chain_unavailable', 'too short'))
  })
})
