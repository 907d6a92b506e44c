import {
  attestationPublishedTopic,
  checkpointTopic,
  parseAttestationPublished,
  readAttestationPublished,
  ServiceError,
} from '@countersign/protocol'
import { type AnyReceipt, type ChainReader, type LogContract, nameSignature } from '@countersign/receipt'
import { createRpc, getTransaction, limitRpc, type Rpc, toQuantity, unavailable } from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import {
  assertOne,
  createAnchorFinder,
  type FindBlock,
  type FoundAnchor,
  isCounted,
  readEntry,
  type StatedAnchor,
} from './findAnchors.ts'
import { emptyManifest, type Manifest, type ManifestLogContract } from './parseManifest.ts'
import { parseLog, type RawLog, type TimedLog, withBlockTime } from './readLogs.ts'

export type Publication = { txHash: string; blockNumber: number; blockTime: Date; ipfsCid: string }

export type Chain = {
  /** The address of the contract with the events, in lower case. */
  contract: string
  /** The contracts with the checkpoints of logs. */
  logContracts: readonly LogContract[]
  /** Reads the chain for `checkReceipt`. */
  reader: ChainReader
  /** A transaction's receipt, for any wallet: from events, or else from anchors, which also name the wallet. */
  findReceipt(txHash: string, findBlock: FindBlock): Promise<{ cid: string; wallet?: string }>
  /** The checkpoint that covers a receipt without an event. Undefined if it has an event, or neither. */
  findAnchor(published: PublishedReceipt, findBlock: FindBlock): Promise<FoundAnchor | undefined>
  /** The events that `reader` has returned for this wallet and transaction. */
  publications: readonly Publication[]
}

/** `stated` is the checkpoint that a service names. */
type PublishedReceipt = { receipt: AnyReceipt; cid: string; stated: StatedAnchor | undefined }

export type CreateChainParameters = {
  contract: string
  /** The contract's first block. It speeds up searches. */
  fromBlock: number
  /** Rejects nodes of other chains. Undefined for any chain. */
  chainId?: number | undefined
  logContracts: readonly ManifestLogContract[]
}

/** A transaction usually has one event. The limit bounds the work that a node or publisher can cause. */
const MAX_LOGS = 16
/** For the search of checkpoints in old blocks. */
const MAX_REQUESTS = 20_000
const MAX_SEARCH_MS = 900_000

export function createChain(
  rpc: Rpc,
  { contract, fromBlock, chainId, logContracts }: CreateChainParameters,
  { now = () => new Date() }: { now?: () => Date } = {},
): Chain {
  const publications: Publication[] = []
  const answers = new Map<string, Promise<TimedLog[]>>()
  const isOfContract = (log: RawLog) => log.address.toLowerCase() === contract
  const startedMs = now().getTime()
  const isOver = () => now().getTime() - startedMs > MAX_SEARCH_MS
  const anchors = logContracts.length === 0 ? undefined : createAnchorFinder(rpc, { contracts: logContracts, isOver })

  async function getLogs(topics: readonly (string | null)[], address = contract): Promise<RawLog[]> {
    await assertChain(rpc, chainId)
    const filter = { address, topics, fromBlock: toQuantity(fromBlock), toBlock: 'latest' }
    const result = await rpc.call('eth_getLogs', [filter])
    const what = `${rpc.host}: eth_getLogs`
    if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
    if (result.length > MAX_LOGS) throw unavailable(`${what} returned ${result.length} logs for one transaction`)
    return result.map((log) => parseLog(log, what)).filter((log) => log !== undefined)
  }

  async function getTimedLogs(topics: readonly string[], address: string): Promise<TimedLog[]> {
    const logs = await getLogs(topics, address)
    const timed = await Promise.all(logs.map((log) => withBlockTime(rpc, log)))
    publications.push(...timed.filter(isOfContract).flatMap((log) => toPublication(log, topics) ?? []))
    return timed
  }

  /** The checkpoint of the anchor that was found, or why the chain could not be searched for one. */
  let checkpoints: RawLog[] = []
  let fault: VerifierError | undefined
  const reader: ChainReader = {
    async getLogs({ address, topics }) {
      if (fault !== undefined) throw fault
      if (topics[0] === checkpointTopic) return Promise.all(checkpoints.map((log) => withBlockTime(rpc, log)))
      const key = [address, ...topics].join()
      const answer = answers.get(key) ?? getTimedLogs(topics, address)
      answers.set(key, answer)
      return answer
    },
    async getTransactionState(query) {
      await assertChain(rpc, chainId)
      return getTransactionState(rpc, query)
    },
  }

  async function findEventCid(txHash: string): Promise<string | undefined> {
    const logs = await getLogs([attestationPublishedTopic, null, txHash])
    const own = logs.filter(isOfContract)
    const events = own.flatMap((log) => readAttestationPublished(log) ?? [])
    if (events.length === 0) for (const log of own) assertReadable(rpc, log)
    const cids = events.filter((event) => event.txHash === txHash).map(({ ipfsCid }) => ipfsCid)
    assertOne(cids)
    return cids[0]
  }

  async function hasEvent(receipt: AnyReceipt, cid: string): Promise<boolean> {
    const { from, txHash } = nameSignature(receipt)
    const topics = [attestationPublishedTopic, `0x${from.slice(2).padStart(64, '0')}`, txHash] as const
    await reader.getLogs({ address: contract, topics })
    return publications.some(({ ipfsCid }) => ipfsCid === cid)
  }

  return {
    contract,
    logContracts,
    publications,
    reader,

    async findReceipt(txHash, findBlock) {
      const cid = await findEventCid(txHash)
      if (cid !== undefined) return { cid }
      if (anchors !== undefined) return anchors.findReceipt(txHash, findBlock)
      throw new VerifierError('event_not_found', 'the transaction has no published receipt', {
        details: `contract ${contract} on ${rpc.host} has no event for ${txHash}; it may not be published yet`,
      })
    },

    async findAnchor({ receipt, cid, stated: given }, findBlock) {
      const stated = given && { ...given, contract: given.contract.toLowerCase() }
      if (readEntry(receipt) === undefined || (anchors === undefined && stated === undefined)) return undefined
      try {
        if (await hasEvent(receipt, cid)) return undefined
        const isListed = stated !== undefined && stated.chainId === chainId && isCounted(logContracts, stated)
        const found = isListed
          ? await anchors?.findStated(stated, findBlock)
          : await anchors?.findCovering(receipt, findBlock)
        checkpoints = found?.log !== undefined && found.isFinal ? [found.log] : []
        const missing = { log: undefined, isFinal: true, problems: [] }
        return found ?? (stated && { given: { ...stated, block: undefined }, ...missing })
      } catch (error) {
        if (!(error instanceof VerifierError)) throw error
        fault = error
        return undefined
      }
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

export type OpenChainParameters = {
  /** A node of the chain that has the events. */
  rpc?: string | undefined
  /** The contract on that chain, if a manifest doesn't name it. */
  contract?: string | undefined
  /** `LogWitness` contracts on that chain. They add to the manifests. */
  logContracts?: readonly LogContract[] | undefined
  /** The chain that the node must serve. */
  chainId?: number | undefined
  manifests: readonly Manifest[]
}

/**
 * Connects to the node and chooses the contracts on its chain. If the node serves another chain, the steps that read it report that. Throws
 * only if nothing names a contract. Undefined without a node.
 */
export async function openChain(
  deps: { fetchBytes: FetchBytes; now: () => Date },
  { rpc: url, logContracts = [], ...wanted }: OpenChainParameters,
): Promise<Chain | undefined> {
  if (url === undefined) return undefined
  const rpc = limitRpc(createRpc(deps, { url }), MAX_REQUESTS)
  const chainId = logContracts.length === 0 ? undefined : (wanted.chainId ?? (await getChainId(rpc)))
  const own = chainId === undefined ? [] : logContracts.map((contract) => ({ ...contract, chainId }))
  const manifests = [...wanted.manifests, { ...emptyManifest, logContracts: own }]
  return createChain(rpc, await chooseContract(rpc, { ...wanted, manifests }), deps)
}

/** Chooses the contracts, the first block of the one with events, and the chain that the node must serve. */
export async function chooseContract(
  rpc: Rpc,
  { contract, manifests, chainId: wanted }: Omit<OpenChainParameters, 'rpc' | 'logContracts'>,
): Promise<CreateChainParameters> {
  const listed = manifests.flatMap(({ contracts }) => contracts)
  const logs = manifests.flatMap(({ logContracts = [] }) => logContracts)
  const last = listed.at(-1) ?? (contract === undefined ? undefined : logs.at(-1))
  if (last === undefined) {
    if (contract !== undefined) return { contract, fromBlock: 0, chainId: wanted, logContracts: [] }
    const details = 'no manifest names one'
    const message = 'a node needs a contract'
    throw new VerifierError('invalid_arguments', message, { details, need: 'contract' })
  }
  // If the caller names no chain, the node's chain id selects the contracts.
  const chainId = wanted ?? (await getChainId(rpc))
  const onChain = listed.filter((entry) => entry.chainId === chainId)
  const logContracts = logs.filter((entry) => entry.chainId === chainId)
  const entry = contract === undefined ? onChain.at(-1) : onChain.find(({ address }) => address === contract)
  const address = contract ?? entry?.address
  if (chainId !== undefined && address !== undefined) {
    return { contract: address, fromBlock: entry?.fromBlock ?? 0, chainId, logContracts }
  }
  // The steps that read the chain report that this node is unavailable or serves another chain.
  return { contract: address ?? last.address, fromBlock: 0, chainId: last.chainId, logContracts: [] }
}

async function getChainId(rpc: Rpc): Promise<number | undefined> {
  try {
    return await rpc.getChainId()
  } catch (error) {
    if (error instanceof VerifierError) return undefined
    throw error
  }
}
