import { attestationPublishedTopic, parseAttestationPublished, ServiceError } from '@countersign/protocol'
import type { ChainLog, ChainReader } from '@countersign/receipt'
import { isObject, parseQuantity, type Rpc, unavailable } from './createRpc.ts'
import { VerifierError } from './errors.ts'

type LogQuery = { address: string; topics: readonly (string | null)[] }

/** A wallet's transaction has one event; a node that sends hundreds wants to keep us busy. */
const MAX_LOGS = 16

/** The chain as `checkReceipt` asks it. `fromBlock` is where the contract was deployed; nodes search faster from there. */
export function createChainReader(rpc: Rpc, { fromBlock }: { fromBlock: number }): ChainReader {
  return {
    async getLogs(query) {
      const logs = await getEvents(rpc, { ...query, fromBlock })
      return Promise.all(logs.map((log) => withBlockTime(rpc, log)))
    },

    async getTransactionState({ chainId, txHash }) {
      if ((await rpc.getChainId()) !== chainId) return 'unknown'
      const result = await rpc.call('eth_getTransactionByHash', [txHash])
      if (result === null) return 'unknown'
      const what = `${rpc.host}: eth_getTransactionByHash`
      if (!isObject(result) || !isHash(result.hash)) throw unavailable(`${what} is not a transaction`)
      if (result.hash.toLowerCase() !== txHash) throw unavailable(`${what} is another transaction`)
      if (result.blockNumber === null) return 'pending'
      parseQuantity(result.blockNumber, `${what}: blockNumber`)
      return 'mined'
    },
  }
}

/** The CID of the receipt that the contract names for a transaction, whoever's it is. */
export async function findReceiptCid(
  rpc: Rpc,
  { contract, fromBlock, txHash }: { contract: string; fromBlock: number; txHash: string },
): Promise<string> {
  const topics = [attestationPublishedTopic, null, txHash]
  const logs = await getEvents(rpc, { address: contract, topics, fromBlock })
  const cids = new Set(
    logs
      .filter((log) => log.address.toLowerCase() === contract)
      .map((log) => readEvent(rpc, log))
      .filter((event) => event.txHash === txHash)
      .map(({ ipfsCid }) => ipfsCid),
  )
  const [cid, ...others] = cids
  if (cid === undefined) {
    throw new VerifierError('event_not_found', 'no receipt is published for the transaction', {
      details: `the contract ${contract} on ${rpc.host} has no event for ${txHash}; it may not be published yet`,
    })
  }
  if (others.length > 0) {
    throw new VerifierError('invalid_arguments', 'the transaction has more than one receipt', {
      details: `name one of them: ${[...cids].join(', ')}`,
    })
  }
  return cid
}

function readEvent({ host }: Rpc, log: RawLog) {
  try {
    return parseAttestationPublished(log)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw unavailable(`${host}: eth_getLogs has an event that no contract of ours writes (${error.details})`, error)
  }
}

type RawLog = Omit<ChainLog, 'blockTime'> & { blockHash: string }

async function getEvents(
  rpc: Rpc,
  { address, topics, fromBlock }: LogQuery & { fromBlock: number },
): Promise<RawLog[]> {
  const filter = { address, topics, fromBlock: `0x${fromBlock.toString(16)}`, toBlock: 'latest' }
  const result = await rpc.call('eth_getLogs', [filter])
  const what = `${rpc.host}: eth_getLogs`
  if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
  if (result.length > MAX_LOGS) throw unavailable(`${what} has ${result.length} logs for one transaction`)
  return result.map((log) => parseLog(log, what)).filter((log) => log !== undefined)
}

/** A log that a reorganisation removed is no log. */
function parseLog(log: unknown, what: string): RawLog | undefined {
  if (!isObject(log)) throw unavailable(`${what}: a log is not an object`)
  if (log.removed === true) return undefined
  const { address, topics, data, blockHash } = log
  if (typeof address !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(address)) {
    throw unavailable(`${what}: an address is malformed`)
  }
  if (!Array.isArray(topics) || !topics.every(isHash)) throw unavailable(`${what}: topics are malformed`)
  if (typeof data !== 'string') throw unavailable(`${what}: data is malformed`)
  if (!isHash(blockHash)) throw unavailable(`${what}: a block hash is malformed`)
  return { address, topics, data, blockHash, blockNumber: parseQuantity(log.blockNumber, `${what}: blockNumber`) }
}

async function withBlockTime(rpc: Rpc, { blockHash, ...log }: RawLog): Promise<ChainLog> {
  const block = await rpc.call('eth_getBlockByNumber', [`0x${log.blockNumber.toString(16)}`, false])
  const what = `${rpc.host}: eth_getBlockByNumber`
  if (!isObject(block) || !isHash(block.hash)) throw unavailable(`${what} is not a block`)
  // Between the two questions the chain may have been reorganised; a time of another block would be worthless.
  if (block.hash.toLowerCase() !== blockHash.toLowerCase()) throw unavailable(`${what} is not the block of the event`)
  const time = new Date(parseQuantity(block.timestamp, `${what}: timestamp`) * 1000)
  if (Number.isNaN(time.getTime())) throw unavailable(`${what}: timestamp is not a time`)
  return { ...log, blockTime: time }
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value)
}
