import { parseCheckpoint, parseNote, parseTlogProof } from '@countersign/log'
import {
  type CheckpointEvent,
  checkpointTopic,
  fromPrefixedHex,
  parseCheckpointEvent,
  ServiceError,
  toHex,
  toSizeTopic,
} from '@countersign/protocol'
import {
  type Anchor,
  type AnchoredReceipt,
  type AnyReceipt,
  fromCidHash,
  type GivenAnchor,
  type LogContract,
  MAX_PARTS_BYTES,
  nameSignature,
  parseAnchorBlock,
  readAnchor,
} from '@countersign/receipt'
import { getBlock, getTransaction, parseQuantity, type Rpc, toQuantity, unavailable } from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { BlockResult } from './getBlock.ts'
import { mapConcurrently } from './monitor/mapConcurrently.ts'
import type { ManifestLogContract } from './parseManifest.ts'
import { type RawLog, readLogs } from './readLogs.ts'

/** Fetches a block of an anchor by its CID. */
export type FindBlock = (cid: string) => Promise<BlockResult>

/** A checkpoint of a listed log on the chain. */
export type Checkpoint = CheckpointEvent & { contract: string; log: RawLog }

/** The root of a log at a size, as the chain has it. */
export type AnchoredTree = { origin: string; size: number; root: string }

/** A checkpoint that a service names, with the path of the receipt's entry. */
export type StatedAnchor = Omit<GivenAnchor, 'block'> & { chainId: number }

/** The checkpoint that covers a receipt, for `checkReceipt`. */
export type FoundAnchor = {
  given: GivenAnchor
  /** Undefined if the chain has no such checkpoint. */
  log: RawLog | undefined
  isFinal: boolean
  /** Why its block or parts could not be used. */
  problems: readonly string[]
}

/** Without an anchor, the fault says why. If it isn't withheld, it is invalid. */
type OpenedAnchor = { block: Uint8Array | undefined; anchor?: Anchor; fault: string; isWithheld: boolean }

/** Without a finalized block, blocks this far below the newest count as final. */
const UNSETTLED_BLOCKS = 64
/** Enclave and chain have different clocks. */
const CLOCK_TOLERANCE_MS = 600_000
const DAY_MS = 86_400_000
/** If an anchor is withheld or invalid, the next one may list the receipt with its path. */
const MAX_TRIES = 3

/** Reads checkpoints of the listed logs, and the anchors that they refer to: `anchor-v1.md`. At least one contract. Stops if `isOver`. */
export function createAnchorFinder(
  rpc: Rpc,
  { contracts, isOver }: { contracts: readonly ManifestLogContract[]; isOver: () => boolean },
) {
  const addresses = [...new Set(contracts.map(({ address }) => address))]
  const ids = [...new Set(contracts.flatMap(({ logs }) => logs.map(({ id }) => id)))]
  const fromBlock = Math.min(...contracts.map((contract) => contract.fromBlock ?? 0))

  function assertInTime(): void {
    if (isOver()) throw unavailable(`the search for checkpoints on ${rpc.host} took too long`)
  }

  async function getNumber(tag: 'finalized' | 'latest'): Promise<number> {
    const { block } = await getBlock(rpc, tag)
    return parseQuantity(block.number, `${rpc.host}: eth_getBlockByNumber: number`)
  }

  async function getFinal(): Promise<number> {
    const latest = await getNumber('latest')
    try {
      return Math.min(latest, await getNumber('finalized'))
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      return Math.max(0, latest - UNSETTLED_BLOCKS)
    }
  }

  type Range = { fromBlock?: number; toBlock: number; isBackward?: boolean; size?: number }

  /** Checkpoints that count, in order. One range of blocks after the other. */
  async function* list({ size, ...range }: Range): AsyncGenerator<Checkpoint[]> {
    const topics = [checkpointTopic, ids, ...(size === undefined ? [] : [toSizeTopic(size)])]
    for await (const logs of readLogs(rpc, { addresses, topics, fromBlock, ...range })) {
      assertInTime()
      const found = logs.flatMap((log) => toCheckpoint(rpc, log)).filter((one) => isCounted(contracts, one))
      const sorted = found.toSorted((a, b) => a.log.blockNumber - b.log.blockNumber || a.size - b.size)
      yield range.isBackward ? sorted.reverse() : sorted
    }
  }

  /** The first block from this time on, or the newest. */
  async function findBlockAt(timeMs: number): Promise<number> {
    let [low, high] = [fromBlock, await getNumber('latest')]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if ((await getBlock(rpc, toQuantity(middle))).time.getTime() < timeMs) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Those within a day of the transaction come first, the closest ones before others. Then all earlier ones, newest first. */
  async function* listAround(txHash: string): AsyncGenerator<Checkpoint> {
    const { blockNumber } = (await getTransaction(rpc, txHash)) ?? {}
    let toBlock = await getNumber('latest')
    if (blockNumber !== undefined) {
      const timeMs = (await getBlock(rpc, toQuantity(blockNumber))).time.getTime()
      const first = await findBlockAt(timeMs - DAY_MS)
      const close: Checkpoint[] = []
      for await (const some of list({ fromBlock: first, toBlock: await findBlockAt(timeMs + DAY_MS) }))
        close.push(...some)
      const distance = ({ log }: Checkpoint) => Math.abs(log.blockNumber - blockNumber)
      yield* close.toSorted((a, b) => distance(a) - distance(b))
      toBlock = first - 1
    }
    for await (const some of list({ toBlock, isBackward: true })) yield* some
  }

  async function toFound(
    { contract, id, size, log }: Checkpoint,
    block: Pick<GivenAnchor, 'path' | 'block'>,
    faults: string[],
  ) {
    const problems = faults.map((fault) => `the anchor block of ${size} entries: ${fault}`)
    return { given: { contract, id, size, ...block }, log, isFinal: log.blockNumber <= (await getFinal()), problems }
  }

  return {
    getFinal,
    list,

    /** A receipt of the transaction, as an anchor lists it. */
    async findReceipt(txHash: string, findBlock: FindBlock): Promise<AnchoredReceipt> {
      let [searched, unread] = [0, 0]
      for await (const checkpoint of listAround(txHash)) {
        if (isOver()) break
        searched += 1
        const { anchor } = await openAnchor(checkpoint, { findBlock, isOver })
        if (anchor === undefined) unread += 1
        const own = anchor?.receipts.filter((receipt) => receipt.txHash === txHash) ?? []
        assertOne(own.map(({ cid }) => cid))
        if (own[0] !== undefined) return own[0]
      }
      throw new VerifierError('event_not_found', 'the transaction has no published receipt', {
        details: `no event on ${rpc.host} names ${txHash}, and none of ${searched} anchor blocks lists it (${unread} withheld or invalid)`,
      })
    },

    /** The first checkpoint of its log that covers a receipt's entry. Undefined if there is none. */
    async findCovering(receipt: AnyReceipt, findBlock: FindBlock): Promise<FoundAnchor | undefined> {
      const { origin, index } = readEntry(receipt) ?? {}
      if (origin === undefined || index === undefined) return undefined
      const fromBlock = await findBlockAt(Date.parse(nameSignature(receipt).signedAt) - CLOCK_TOLERANCE_MS)
      const tries = new Map<string, number>()
      let other: FoundAnchor | undefined
      for await (const some of list({ fromBlock, toBlock: await getNumber('latest') })) {
        for (const checkpoint of some) {
          const key = `${checkpoint.contract} ${checkpoint.id}`
          const tried = tries.get(key) ?? 0
          if (checkpoint.size <= index || tried === MAX_TRIES) continue
          const { block, anchor, fault, isWithheld } = await openAnchor(checkpoint, { findBlock, isOver })
          // Not all may have been fetched.
          assertInTime()
          const named =
            block && readOrUndefined(() => parseCheckpoint(parseNote(parseAnchorBlock(block).checkpoint).text))
          const isOfLog = named === undefined || named.origin === origin
          const path = isOfLog && anchor ? toPath(anchor, index) : undefined
          if (path !== undefined) return toFound(checkpoint, { path, block }, [])
          // The first anchor of a log may start after the entry. A later one then has its path.
          if (isOfLog && anchor !== undefined && tried === 0) continue
          tries.set(key, tried + 1)
          // An invalid one fails, and a withheld one is a skip.
          if (isOfLog && anchor === undefined)
            other ??= await toFound(checkpoint, { path: [], block: isWithheld ? undefined : block }, [fault])
        }
        if ([...tries.values()].filter((tried) => tried === MAX_TRIES).length >= ids.length) break
      }
      return other
    },

    /** The checkpoint that a service names, with its path. Undefined if the chain doesn't have it. */
    async findStated(stated: StatedAnchor, findBlock: FindBlock): Promise<FoundAnchor | undefined> {
      const { contract, id, size, path } = stated
      for await (const some of list({ toBlock: await getNumber('latest'), size })) {
        const own = some.find((one) => one.size === size && one.id === id && one.contract === contract)
        if (own === undefined) continue
        const { bytes: block, problems } = await findBlock(fromCidHash(fromPrefixedHex(own.block)))
        return toFound(own, { path, block }, [...problems])
      }
      return undefined
    },
  }
}

/** Fetches the block of an anchor and all its parts. What isn't fetched when the time is over is withheld. */
export async function openAnchor(
  checkpoint: Checkpoint,
  { findBlock, isOver }: { findBlock: FindBlock; isOver: () => boolean },
): Promise<OpenedAnchor> {
  const find: FindBlock = async (cid) =>
    isOver() ? { bytes: undefined, problems: ['the time was over'] } : findBlock(cid)
  const { bytes: block, problems } = await find(fromCidHash(fromPrefixedHex(checkpoint.block)))
  const withheld = (reasons: readonly string[]) => ({
    block,
    fault: ['withheld', ...reasons].join('; '),
    isWithheld: true,
  })
  if (block === undefined) return withheld(problems)
  const invalid = (fault: string) => ({ block, fault, isWithheld: false })
  try {
    let missing: readonly string[] | undefined
    let fetchedBytes = 0
    const parts = await mapConcurrently(parseAnchorBlock(block).parts, async (cid) => {
      if (missing !== undefined || fetchedBytes > MAX_PARTS_BYTES) return new Uint8Array()
      const found = await find(cid)
      if (found.bytes === undefined) missing ??= found.problems
      fetchedBytes += found.bytes?.length ?? 0
      return found.bytes ?? new Uint8Array()
    })
    if (fetchedBytes > MAX_PARTS_BYTES) return invalid('the parts are too large')
    if (missing !== undefined) return withheld(missing)
    const anchor = readAnchor(block, parts)
    const isSame = anchor.size === checkpoint.size && `0x${toHex(anchor.root)}` === checkpoint.root
    return isSame ? { anchor, ...invalid('') } : invalid('its checkpoint is another one than on the chain')
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return invalid(error.details ?? error.message)
  }
}

/** Undefined if the anchor doesn't have the entry. */
export function toPath(anchor: Anchor, index: number): string[] | undefined {
  return readOrUndefined(() => anchor.toPath(index).map(toHex))
}

/** The log and the index that a receipt's own proof names. Undefined without one. */
export function readEntry(receipt: AnyReceipt): { origin: string; index: number } | undefined {
  if (!('log' in receipt) || receipt.log === undefined) return undefined
  const { log } = receipt
  return readOrUndefined(() => {
    const { index, checkpoint } = parseTlogProof(log)
    return { origin: parseCheckpoint(parseNote(checkpoint).text).origin, index }
  })
}

function readOrUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

/** A node may return any events. Ignores those of other kinds. */
function toCheckpoint({ host }: Rpc, log: RawLog): Checkpoint[] {
  if (log.topics[0]?.toLowerCase() !== checkpointTopic) return []
  try {
    return [{ ...parseCheckpointEvent(log), contract: log.address.toLowerCase(), log }]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw unavailable(`${host}: eth_getLogs has a malformed checkpoint (${error.details})`, error)
  }
}

/** Whether a manifest lists the log up to at least this size. */
export function isCounted(
  contracts: readonly LogContract[],
  { contract, id, size }: Omit<GivenAnchor, 'path' | 'block'>,
) {
  return contracts.some(
    ({ address, logs }) =>
      address === contract && logs.some(({ id: listed, upTo = size }) => listed === id && size <= upTo),
  )
}

/** Throws if a transaction has several receipts. */
export function assertOne(cids: readonly string[]): void {
  const distinct = [...new Set(cids)]
  if (distinct.length < 2) return
  throw new VerifierError('invalid_arguments', 'the transaction has more than one receipt', {
    details: `name one of them: ${distinct.join(', ')}`,
  })
}
