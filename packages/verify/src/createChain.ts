import {
  attestationPublishedTopic,
  type EventLog,
  isPlainObject,
  isPrefixedHex,
  parseAttestationPublished,
  readAttestationPublished,
  ServiceError,
} from '@countersign/protocol'
import type { ChainReader } from '@countersign/receipt'
import {
  createRpc,
  getBlock,
  getTransaction,
  isHash,
  parseQuantity,
  type Rpc,
  toQuantity,
  unavailable,
} from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import type { Manifest } from './parseManifest.ts'

export type Publication = { txHash: string; blockNumber: number; blockTime: Date; ipfsCid: string }

export type Chain = {
  /** The contract's address, in lower case. */
  contract: string
  /** Reads the chain for `checkReceipt`. */
  reader: ChainReader
  /** The CID of a transaction's receipt, for any wallet. */
  findReceiptCid(txHash: string): Promise<string>
  /** The events that `reader` has returned for this wallet and transaction. */
  publications: readonly Publication[]
}

export type CreateChainParameters = {
  contract: string
  /** The contract's first block. It speeds up searches. */
  fromBlock: number
  /** Rejects nodes of other chains. Undefined for any chain. */
  chainId?: number | undefined
}

export type RawLog = EventLog & { address: string; blockNumber: number; blockHash: string; transactionHash: string }
export type TimedLog = RawLog & { blockTime: Date }

/** A transaction usually has one event. The limit bounds the work that a node or publisher can cause. */
const MAX_LOGS = 16

export function createChain(rpc: Rpc, { contract, fromBlock, chainId }: CreateChainParameters): Chain {
  const publications: Publication[] = []
  const isOfContract = (log: RawLog) => log.address.toLowerCase() === contract

  async function getLogs(topics: readonly (string | null)[], address = contract): Promise<RawLog[]> {
    await assertChain(rpc, chainId)
    const filter = { address, topics, fromBlock: toQuantity(fromBlock), toBlock: 'latest' }
    const result = await rpc.call('eth_getLogs', [filter])
    const what = `${rpc.host}: eth_getLogs`
    if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
    if (result.length > MAX_LOGS) throw unavailable(`${what} returned ${result.length} logs for one transaction`)
    return result.map((log) => parseLog(log, what)).filter((log) => log !== undefined)
  }

  return {
    contract,
    publications,
    reader: {
      async getLogs({ address, topics }) {
        const logs = await getLogs(topics, address)
        const timed = await Promise.all(logs.map((log) => withBlockTime(rpc, log)))
        publications.push(...timed.filter(isOfContract).flatMap((log) => toPublication(log, topics) ?? []))
        return timed
      },
      async getTransactionState(query) {
        await assertChain(rpc, chainId)
        return getTransactionState(rpc, query)
      },
    },

    async findReceiptCid(txHash) {
      const logs = await getLogs([attestationPublishedTopic, null, txHash])
      const own = logs.filter(isOfContract)
      const events = own.flatMap((log) => readAttestationPublished(log) ?? [])
      if (events.length === 0) for (const log of own) assertReadable(rpc, log)
      const cids = new Set(events.filter((event) => event.txHash === txHash).map(({ ipfsCid }) => ipfsCid))
      const [cid, ...others] = cids
      if (cid === undefined) {
        throw new VerifierError('event_not_found', 'the transaction has no published receipt', {
          details: `contract ${contract} on ${rpc.host} has no event for ${txHash}; it may not be published yet`,
        })
      }
      if (others.length > 0) {
        throw new VerifierError('invalid_arguments', 'the transaction has more than one receipt', {
          details: `name one of them: ${[...cids].join(', ')}`,
        })
      }
      return cid
    },
  }
}

export async function assertChain(rpc: Rpc, chainId: number | undefined) {
  if (chainId === undefined) return
  const served = await rpc.getChainId()
  if (served !== chainId) throw unavailable(`${rpc.host} is a node of chain ${served}, not ${chainId}`)
}

async function getTransactionState(
  rpc: Rpc,
  { chainId, txHash }: { chainId: number; txHash: string },
): Promise<'mined' | 'pending' | 'unknown'> {
  if ((await rpc.getChainId()) !== chainId) return 'unknown'
  const found = await getTransaction(rpc, txHash)
  return found === undefined ? 'unknown' : found.blockNumber === undefined ? 'pending' : 'mined'
}

function assertReadable({ host }: Rpc, log: RawLog) {
  try {
    parseAttestationPublished(log)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw unavailable(`${host}: eth_getLogs has an event that names no receipt (${error.details})`, error)
  }
}

/** Undefined for events that `checkReceipt` ignores or rejects. */
function toPublication(log: TimedLog, topics: readonly string[]): Publication | undefined {
  if (topics.some((topic, index) => log.topics[index]?.toLowerCase() !== topic.toLowerCase())) return undefined
  const event = readAttestationPublished(log)
  const { blockNumber, blockTime } = log
  return event && { txHash: log.transactionHash.toLowerCase(), blockNumber, blockTime, ipfsCid: event.ipfsCid }
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

export type OpenChainParameters = {
  /** A node of the chain that has the events. */
  rpc?: string | undefined
  /** The contract on that chain, if a manifest doesn't name it. */
  contract?: string | undefined
  /** The chain that the node must serve. */
  chainId?: number | undefined
  manifests: readonly Manifest[]
}

/**
 * Connects to the node and chooses the contract on its chain. If the node serves another chain, the steps that read it report that. Throws
 * only if nothing names a contract. Undefined without a node.
 */
export async function openChain(
  deps: { fetchBytes: FetchBytes },
  { rpc: url, ...wanted }: OpenChainParameters,
): Promise<Chain | undefined> {
  if (url === undefined) return undefined
  const rpc = createRpc(deps, { url })
  return createChain(rpc, await chooseContract(rpc, wanted))
}

/** Chooses the contract, its first block, and the chain that the node must serve. */
export async function chooseContract(
  rpc: Rpc,
  { contract, manifests, chainId: wanted }: Omit<OpenChainParameters, 'rpc'>,
): Promise<CreateChainParameters> {
  const listed = manifests.flatMap(({ contracts }) => contracts)
  const last = listed.at(-1)
  if (last === undefined) {
    if (contract !== undefined) return { contract, fromBlock: 0, chainId: wanted }
    const details = 'no manifest names one'
    const message = 'a node needs a contract'
    throw new VerifierError('invalid_arguments', message, { details, need: 'contract' })
  }
  // If the caller names no chain, the node's chain id selects the contract.
  const chainId = wanted ?? (await getChainId(rpc))
  const onChain = listed.filter((entry) => entry.chainId === chainId)
  const entry = contract === undefined ? onChain.at(-1) : onChain.find(({ address }) => address === contract)
  const address = contract ?? entry?.address
  if (chainId !== undefined && address !== undefined) {
    return { contract: address, fromBlock: entry?.fromBlock ?? 0, chainId }
  }
  // The steps that read the chain report that this node is unavailable or serves another chain.
  return { contract: address ?? last.address, fromBlock: 0, chainId: last.chainId }
}

async function getChainId(rpc: Rpc): Promise<number | undefined> {
  try {
    return await rpc.getChainId()
  } catch (error) {
    if (error instanceof VerifierError) return undefined
    throw error
  }
}
