import {
  attestationPublishedTopic,
  type EventLog,
  parseAttestationPublished,
  ServiceError,
} from '@countersign/protocol'
import type { ChainReader } from '@countersign/receipt'
import { VerificationError } from './errors.ts'
import { type FetchBytes, FetchError } from './fetchBytes.ts'
import type { ContractAnchor } from './trust.ts'

/** Where an event was found. */
export type Publication = { txHash: string; blockNumber: number; blockTime: Date; ipfsCid: string }

export type Chain = {
  reader: ChainReader
  /** The CID of the receipt that the contract names for a transaction, whoever's it is. */
  findReceiptCid(txHash: string): Promise<string>
  /** The events that `reader` has answered so far. */
  publications: readonly Publication[]
  /** Whether `reader` was answered, and with nothing at all of the contract. A log that cannot be read is not nothing. */
  isWithoutEvent(): boolean
}

type RawLog = EventLog & { address: string; blockNumber: number; blockHash: string; transactionHash: string }

const MAX_ANSWER_BYTES = 1_048_576
/** A wallet's transaction has one event; a node that sends hundreds wants to keep us busy. */
const MAX_LOGS = 16

/** The chain as `checkReceipt` asks it, over JSON-RPC. A node that answers nonsense, or is of another chain, was not asked. */
export function createChain({ fetchBytes }: { fetchBytes: FetchBytes }, contract: ContractAnchor): Chain {
  const { host } = new URL(contract.rpcUrl)
  const publications: Publication[] = []
  let logCount: number | undefined
  let nextId = 1
  let chainId: Promise<number> | undefined

  async function call(method: string, params: readonly unknown[]): Promise<unknown> {
    const id = nextId++
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const bytes = await fetchBytes({
      url: contract.rpcUrl,
      maxBytes: MAX_ANSWER_BYTES,
      accept: 'application/json',
      body,
    }).catch((error) => {
      throw error instanceof FetchError ? unavailable(error.message, error) : error
    })
    return readAnswer(bytes, { id, what: `${host}: ${method}` })
  }

  async function assertChain() {
    chainId ??= call('eth_chainId', []).then((result) => parseQuantity(result, `${host}: eth_chainId`))
    const served = await chainId
    if (served !== contract.chainId) throw unavailable(`${host} is a node of chain ${served}, not ${contract.chainId}`)
  }

  async function getLogs(query: { address: string; topics: readonly (string | null)[] }): Promise<RawLog[]> {
    await assertChain()
    const fromBlock = `0x${contract.fromBlock.toString(16)}`
    const result = await call('eth_getLogs', [{ ...query, fromBlock, toBlock: 'latest' }])
    const what = `${host}: eth_getLogs`
    if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
    if (result.length > MAX_LOGS) throw unavailable(`${what} has ${result.length} logs for one transaction`)
    return result.map((log) => parseLog(log, what)).filter((log) => log !== undefined)
  }

  async function getBlockTime({ blockNumber, blockHash }: RawLog): Promise<Date> {
    const block = await call('eth_getBlockByNumber', [`0x${blockNumber.toString(16)}`, false])
    const what = `${host}: eth_getBlockByNumber`
    if (!isObject(block) || !isHash(block.hash)) throw unavailable(`${what} is not a block`)
    // Between the two questions the chain may have been reorganised; a time of another block would be worthless.
    if (block.hash.toLowerCase() !== blockHash.toLowerCase()) throw unavailable(`${what} is not the block of the event`)
    const time = new Date(parseQuantity(block.timestamp, `${what}: timestamp`) * 1000)
    if (Number.isNaN(time.getTime())) throw unavailable(`${what}: timestamp is not a time`)
    return time
  }

  const reader: ChainReader = {
    async getLogs(query) {
      const logs = await getLogs(query)
      const timed = await Promise.all(logs.map(async (log) => ({ ...log, blockTime: await getBlockTime(log) })))
      const own = timed.filter(isOfContract(contract))
      logCount = own.length
      publications.push(...own.flatMap((log) => toPublication(log, query.topics) ?? []))
      return timed
    },
    async getTransactionState(query) {
      await assertChain()
      if (query.chainId !== contract.chainId) return 'unknown'
      const result = await call('eth_getTransactionByHash', [query.txHash])
      if (result === null) return 'unknown'
      const what = `${host}: eth_getTransactionByHash`
      if (!isObject(result) || !isHash(result.hash)) throw unavailable(`${what} is not a transaction`)
      if (result.hash.toLowerCase() !== query.txHash) throw unavailable(`${what} is another transaction`)
      if (result.blockNumber === null) return 'pending'
      parseQuantity(result.blockNumber, `${what}: blockNumber`)
      return 'mined'
    },
  }

  return {
    reader,
    publications,
    isWithoutEvent: () => logCount === 0,
    async findReceiptCid(txHash) {
      const topics = [attestationPublishedTopic, null, txHash]
      const logs = (await getLogs({ address: contract.address, topics })).filter(isOfContract(contract))
      const cids = new Set(logs.filter((log) => log.topics[2]?.toLowerCase() === txHash).map((log) => readCid(log)))
      const [cid, ...others] = cids
      if (cid === undefined) {
        throw new VerificationError(
          'event_not_found',
          `The contract ${contract.address} has no event for this transaction. It may not be published yet.`,
        )
      }
      if (others.length > 0) {
        throw new VerificationError(
          'subject_invalid',
          `The chain names more than one receipt for this transaction. Choose one by its CID: ${[...cids].join(', ')}`,
        )
      }
      return cid
    },
  }

  function readCid(log: RawLog): string {
    try {
      return parseAttestationPublished(log).ipfsCid
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      throw unavailable(`${host}: eth_getLogs has an event that no contract of ours writes`, error)
    }
  }
}

/** Undefined for what `checkReceipt` passes over or refuses. */
function toPublication(log: RawLog & { blockTime: Date }, topics: readonly string[]): Publication | undefined {
  if (topics.some((topic, index) => log.topics[index]?.toLowerCase() !== topic.toLowerCase())) return undefined
  try {
    const { ipfsCid } = parseAttestationPublished(log)
    const { blockNumber, blockTime } = log
    return { txHash: log.transactionHash.toLowerCase(), blockNumber, blockTime, ipfsCid }
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

const isOfContract =
  ({ address }: ContractAnchor) =>
  (log: RawLog) =>
    log.address.toLowerCase() === address

function readAnswer(bytes: Uint8Array, { id, what }: { id: number; what: string }): unknown {
  let answer: unknown
  try {
    answer = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw unavailable(`${what} is not answered with JSON`, cause)
  }
  if (!isObject(answer) || answer.jsonrpc !== '2.0' || answer.id !== id) {
    throw unavailable(`${what} is not answered with JSON-RPC`)
  }
  if (isObject(answer.error)) throw unavailable(`${what} is refused: ${String(answer.error.message).slice(0, 200)}`)
  if (!Object.hasOwn(answer, 'result')) throw unavailable(`${what} is answered without a result`)
  return answer.result
}

/** A log that a reorganisation removed is no log. */
function parseLog(log: unknown, what: string): RawLog | undefined {
  if (!isObject(log)) throw unavailable(`${what}: a log is not an object`)
  if (log.removed === true) return undefined
  const { address, topics, data, blockHash, transactionHash } = log
  if (typeof address !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(address)) {
    throw unavailable(`${what}: an address is malformed`)
  }
  if (!Array.isArray(topics) || !topics.every(isHash)) throw unavailable(`${what}: topics are malformed`)
  if (typeof data !== 'string') throw unavailable(`${what}: data is malformed`)
  if (!isHash(blockHash) || !isHash(transactionHash)) throw unavailable(`${what}: a hash is malformed`)
  const blockNumber = parseQuantity(log.blockNumber, `${what}: blockNumber`)
  return { address, topics, data, blockHash, transactionHash, blockNumber }
}

/** A number as JSON-RPC of Ethereum writes it. */
function parseQuantity(value: unknown, what: string): number {
  const isQuantity = typeof value === 'string' && /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,13})$/.test(value)
  const number = isQuantity ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw unavailable(`${what} is not a number`)
  return number
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function unavailable(message: string, cause?: unknown) {
  return new VerificationError('chain_unavailable', message, { cause })
}
