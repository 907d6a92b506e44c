import { type EventLog, isPlainObject, isPrefixedHex } from '@countersign/protocol'
import { getBlock, isHash, parseQuantity, type Rpc, toQuantity, unavailable } from './createRpc.ts'
import { VerifierError } from './errors.ts'

export type RawLog = EventLog & { address: string; blockNumber: number; blockHash: string; transactionHash: string }
export type TimedLog = RawLog & { blockTime: Date }

/** The blocks of one request. Nodes limit the blocks or the size of the response, and report that in different ways. */
const RANGES = [Number.POSITIVE_INFINITY, 10_000, 1_000, 100]

export type ReadLogsParameters = {
  addresses: readonly string[]
  topics: readonly (string | readonly string[])[]
  fromBlock: number
  toBlock: number
  /** Starts with the newest. */
  isBackward?: boolean | undefined
}

/** Yields the logs of one range of blocks after the other, with as few requests as the node allows. Rejects if it refuses even small ranges. */
export async function* readLogs(rpc: Rpc, parameters: ReadLogsParameters): AsyncGenerator<RawLog[]> {
  const { fromBlock, toBlock, isBackward = false } = parameters
  let [range, ...smaller] = RANGES as [number, ...number[]]
  for (let [first, last] = [fromBlock, toBlock]; first <= last; ) {
    const from = isBackward ? Math.max(first, last - range + 1) : first
    const to = isBackward ? last : Math.min(last, first + range - 1)
    let logs: RawLog[]
    try {
      logs = await getLogs(rpc, { ...parameters, fromBlock: from, toBlock: to })
    } catch (error) {
      const next = smaller.find((size) => size < to - from + 1)
      if (!(error instanceof VerifierError) || next === undefined) throw error
      range = next
      smaller = smaller.filter((size) => size < next)
      continue
    }
    yield logs
    if (isBackward) last = from - 1
    else first = to + 1
  }
}

async function getLogs(rpc: Rpc, { addresses, topics, fromBlock, toBlock }: ReadLogsParameters): Promise<RawLog[]> {
  const range = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) }
  const address = addresses.length === 1 ? addresses[0] : addresses
  const result = await rpc.call('eth_getLogs', [{ address, topics, ...range }])
  const what = `${rpc.host}: eth_getLogs`
  if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
  return result.flatMap((entry) => {
    const log = parseLog(entry, what)
    if (log === undefined || !addresses.includes(log.address.toLowerCase())) return []
    if (log.blockNumber < fromBlock || log.blockNumber > toBlock) throw unavailable(`${what} has other blocks`)
    return [log]
  })
}

/** Undefined for a log that a reorganisation removed. */
export function parseLog(log: unknown, what: string): RawLog | undefined {
  if (!isPlainObject(log)) throw unavailable(`${what}: a log is not an object`)
  if (log.removed === true) return undefined
  const { address, topics, data, blockHash, transactionHash } = log
  if (!isPrefixedHex(address, 20)) throw unavailable(`${what}: an address is malformed`)
  if (!Array.isArray(topics) || !topics.every(isHash)) throw unavailable(`${what}: topics are malformed`)
  if (typeof data !== 'string') throw unavailable(`${what}: data is malformed`)
  if (!isHash(blockHash)) throw unavailable(`${what}: a block hash is malformed`)
  if (!isHash(transactionHash)) throw unavailable(`${what}: a transaction hash is malformed`)
  const blockNumber = parseQuantity(log.blockNumber, `${what}: blockNumber`)
  return { address, topics, data, blockHash, transactionHash, blockNumber }
}

export async function withBlockTime(rpc: Rpc, log: RawLog): Promise<TimedLog> {
  const { hash, time } = await getBlock(rpc, toQuantity(log.blockNumber))
  // The chain may have been reorganised between the two requests.
  if (hash !== log.blockHash.toLowerCase()) {
    throw unavailable(`${rpc.host}: eth_getBlockByNumber is not the block of the event`)
  }
  return { ...log, blockTime: time }
}
