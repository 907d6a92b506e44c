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
  type ChainLog,
  fromCidHash,
  type GivenAnchor,
  type LogContract,
  nameSignature,
  parseAnchorBlock,
  readAnchor,
} from '@countersign/receipt'
import { getBlock, getTransaction, parseQuantity, type Rpc, toQuantity, unavailable } from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { BlockResult } from './getBlock.ts'
import { mapConcurrently } from './monitor/mapConcurrently.ts'
import type { ManifestLogContract } from './parseManifest.ts'
import { type RawLog, readLogs, withBlockTime } from './readLogs.ts'

/** Fetches a block of an anchor by its CID. */
export type FindBlock = (cid: string) => Promise<BlockResult>

/** A checkpoint of a listed log on the chain. */
export type Checkpoint = CheckpointEvent & { contract: string; log: RawLog }

/** A checkpoint that a service names, with the path of the receipt's entry. */
export type StatedAnchor = Omit<GivenAnchor, 'block'> & { chainId: number }

/** A receipt's entry in its log, from its own proof. */
export type ReceiptEntry = { origin: string; index: number; signedAtMs: number }

/** The checkpoint that covers a receipt, for `checkReceipt`. */
export type FoundAnchor = {
  given: GivenAnchor
  /** Undefined if the chain has no such checkpoint. */
  checkpoint: Checkpoint | undefined
  /** Whether the block of the checkpoint is not final yet. */
  isPending: boolean
  /** The checkpoint, if it is in a final block. */
  getLogs(): Promise<readonly ChainLog[]>
  /** Why its block or parts could not be used. */
  problems: readonly string[]
}

type OpenedAnchor =
  | { block: Uint8Array; anchor: Anchor; fault?: undefined; isWithheld?: undefined }
  /** Without `isWithheld`, it is invalid. */
  | { block: Uint8Array | undefined; anchor?: undefined; fault: string; isWithheld: boolean }

/** Without a finalized block, blocks this far below the newest count as final. */
const UNSETTLED_BLOCKS = 64
/** Enclave and chain have different clocks. */
const CLOCK_TOLERANCE_MS = 600_000
const DAY_MS = 86_400_000
/** Almost three days of anchors, at one each 12 s. */
const MAX_SEARCHED = 20_000

export type AnchorFinder = ReturnType<typeof createAnchorFinder>

/** Reads checkpoints of the listed logs, and the anchors that they refer to: `anchor-v1.md`. At least one contract. Stops if `isOver`. */
export function createAnchorFinder(
  rpc: Rpc,
  { contracts, isOver }: { contracts: readonly ManifestLogContract[]; isOver: () => boolean },
) {
  const addresses = [...new Set(contracts.map(({ address }) => address))]
  const ids = [...new Set(contracts.flatMap(({ logs }) => logs.map(({ id }) => id)))]
  const pairs = new Set(contracts.flatMap(({ address, logs }) => logs.map(({ id }) => `${address} ${id}`)))
  const fromBlock = Math.min(...contracts.map((contract) => contract.fromBlock ?? 0))
  const heads = new Map<string, Promise<number>>()

  function getNumber(tag: 'finalized' | 'latest'): Promise<number> {
    const read = async () => {
      const { block } = await getBlock(rpc, tag)
      return parseQuantity(block.number, `${rpc.host}: eth_getBlockByNumber: number`)
    }
    const known = heads.get(tag) ?? read()
    heads.set(tag, known)
    return known
  }

  async function getFinal(): Promise<number> {
    const latest = await getNumber('latest')
    try {
      return Math.min(latest, await getNumber('finalized'))
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      return latest - UNSETTLED_BLOCKS
    }
  }

  type Range = { fromBlock?: number; toBlock: number; isBackward?: boolean; size?: number }

  /** Checkpoints in order, one range of blocks after the other. */
  async function* list({ size, ...range }: Range): AsyncGenerator<Checkpoint[]> {
    const topics = [checkpointTopic, ids, ...(size === undefined ? [] : [toSizeTopic(size)])]
    for await (const logs of readLogs(rpc, { addresses, topics, fromBlock, ...range })) {
      if (isOver()) throw unavailable(`the search for checkpoints on ${rpc.host} took too long`)
      const found = logs.flatMap((log) => toCheckpoint(rpc, log)).filter((one) => findListed(contracts, one).length > 0)
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

  async function toFound(checkpoint: Checkpoint, given: Pick<GivenAnchor, 'path' | 'block'>, problems: string[] = []) {
    const { contract, id, size, log } = checkpoint
    const isPending = log.blockNumber > (await getFinal())
    const getLogs = async () => (isPending ? [] : [await withBlockTime(rpc, log)])
    return { given: { contract, id, size, ...given }, checkpoint, isPending, getLogs, problems }
  }

  return {
    getFinal,
    list,

    /** A receipt of the transaction, as an anchor lists it. */
    async findReceipt(txHash: string, findBlock: FindBlock): Promise<AnchoredReceipt> {
      const unread = { withheld: 0, invalid: 0 }
      let searched = 0
      for await (const checkpoint of listAround(txHash)) {
        if (!isCounted(contracts, checkpoint)) continue
        if (searched === MAX_SEARCHED || isOver()) break
        searched += 1
        const opened = await openAnchor(checkpoint, findBlock)
        if (opened.anchor === undefined) unread[opened.isWithheld ? 'withheld' : 'invalid'] += 1
        const own = opened.anchor?.receipts.filter((receipt) => receipt.txHash === txHash) ?? []
        assertOne(own.map(({ cid }) => cid))
        if (own[0] !== undefined) return own[0]
      }
      const rest = `${unread.withheld} of them are withheld, ${unread.invalid} are invalid`
      throw new VerifierError('event_not_found', 'the transaction has no published receipt', {
        details: `no event names ${txHash}, and none of ${searched} anchors on ${rpc.host} lists it; ${rest}`,
      })
    },

    /** The first checkpoint of its log that covers an entry. Undefined if there is none. */
    async findCovering(
      { origin, index, signedAtMs }: ReceiptEntry,
      findBlock: FindBlock,
    ): Promise<FoundAnchor | undefined> {
      const seen = new Set<string>()
      let other: FoundAnchor | undefined
      const range = {
        fromBlock: await findBlockAt(signedAtMs - CLOCK_TOLERANCE_MS),
        toBlock: await getNumber('latest'),
      }
      for await (const some of list(range)) {
        for (const checkpoint of some) {
          const key = `${checkpoint.contract} ${checkpoint.id}`
          if (checkpoint.size <= index || seen.has(key)) continue
          seen.add(key)
          const opened = await openAnchor(checkpoint, findBlock)
          const { block, anchor, fault } = opened
          const named = block === undefined ? undefined : readOrigin(block)
          if (named !== undefined && named !== origin) continue
          const path = anchor && toPath(anchor, index)
          if (path !== undefined && isCounted(contracts, checkpoint)) return toFound(checkpoint, { path, block })
          // An invalid one fails, and a withheld one is a skip.
          const given = { path: [], block: opened.isWithheld ? undefined : block }
          const what = `the anchor of ${checkpoint.size} entries`
          other ??= await toFound(checkpoint, given, fault === undefined ? [] : [`${what}: ${fault}`])
        }
        if (seen.size === pairs.size) break
      }
      return other
    },

    /** The checkpoint that a service names, with its path. */
    async findStated({ contract, id, size, path }: StatedAnchor, findBlock: FindBlock): Promise<FoundAnchor> {
      for await (const some of list({ toBlock: await getNumber('latest'), size })) {
        const own = some.find((one) => one.size === size && one.id === id && one.contract === contract)
        if (own === undefined) continue
        const { bytes: block, problems } = await findBlock(fromCidHash(fromPrefixedHex(own.block)))
        return toFound(
          own,
          { path, block },
          problems.map((problem) => `the anchor of ${size} entries: ${problem}`),
        )
      }
      return toMissing({ contract, id, size, path })
    },
  }
}

/** A checkpoint in place of an event. `place` is undefined if no final block has it. */
export type PublishedAnchor = Pick<GivenAnchor, 'contract' | 'id' | 'size'> & {
  place: { txHash: string; blockNumber: number } | undefined
}

/** In a form that a worker can pass on. */
export function toPublishedAnchor({ given, checkpoint, isPending }: FoundAnchor): PublishedAnchor {
  const { contract, id, size } = given
  const log = isPending ? undefined : checkpoint?.log
  return {
    contract,
    id,
    size,
    place: log && { txHash: log.transactionHash.toLowerCase(), blockNumber: log.blockNumber },
  }
}

/** The anchor of a receipt without a checkpoint on the chain, or of an unavailable chain. */
export function toMissing(given: Omit<GivenAnchor, 'block'>, error?: VerifierError): FoundAnchor {
  const getLogs = () => (error === undefined ? Promise.resolve([]) : Promise.reject(error))
  return { given: { ...given, block: undefined }, checkpoint: undefined, isPending: false, getLogs, problems: [] }
}

/** Fetches the block of an anchor and all its parts. */
export async function openAnchor(checkpoint: Checkpoint, findBlock: FindBlock): Promise<OpenedAnchor> {
  const { bytes: block, problems } = await findBlock(fromCidHash(fromPrefixedHex(checkpoint.block)))
  const withheld = (reasons: readonly string[]) =>
    ({ block, fault: ['withheld', ...reasons].join('; '), isWithheld: true }) as const
  if (block === undefined) return withheld(problems)
  try {
    let missing: readonly string[] | undefined
    const parts = await mapConcurrently(parseAnchorBlock(block).parts, async (cid) => {
      const found = missing === undefined ? await findBlock(cid) : undefined
      if (found?.bytes === undefined) missing ??= found?.problems ?? []
      return found?.bytes ?? new Uint8Array()
    })
    if (missing !== undefined) return withheld(missing)
    const anchor = readAnchor(block, parts)
    const isSame = anchor.size === checkpoint.size && `0x${toHex(anchor.root)}` === checkpoint.root
    if (isSame) return { block, anchor }
    return { block, fault: 'its block has another checkpoint than the chain', isWithheld: false }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { block, fault: error.details ?? error.message, isWithheld: false }
  }
}

/** Undefined if the anchor doesn't have the entry. */
export function toPath(anchor: Anchor, index: number): string[] | undefined {
  return readOrUndefined(() => anchor.toPath(index).map(toHex))
}

function readOrigin(block: Uint8Array): string | undefined {
  return readOrUndefined(() => parseCheckpoint(parseNote(parseAnchorBlock(block).checkpoint).text).origin)
}

/** The entry that a receipt's own proof names. Undefined without one. */
export function readEntry(receipt: Parameters<typeof nameSignature>[0]): ReceiptEntry | undefined {
  if (!('log' in receipt) || receipt.log === undefined) return undefined
  const { log } = receipt
  const signedAtMs = Date.parse(nameSignature(receipt).signedAt)
  return readOrUndefined(() => {
    const { index, checkpoint } = parseTlogProof(log)
    return { origin: parseCheckpoint(parseNote(checkpoint).text).origin, index, signedAtMs }
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

/** The entries of the manifests for a log. */
export function findListed(contracts: readonly LogContract[], { contract, id }: { contract: string; id: string }) {
  return contracts
    .filter(({ address }) => address === contract)
    .flatMap(({ logs }) => logs.filter((one) => one.id === id))
}

/** Whether a manifest lists the log up to at least this size. */
export function isCounted(contracts: readonly LogContract[], checkpoint: Checkpoint): boolean {
  return findListed(contracts, checkpoint).some(({ upTo = Number.MAX_SAFE_INTEGER }) => checkpoint.size <= upTo)
}

/** Throws if a transaction has several receipts. */
export function assertOne(cids: readonly string[]): void {
  const distinct = [...new Set(cids)]
  if (distinct.length < 2) return
  throw new VerifierError('invalid_arguments', 'the transaction has more than one receipt', {
    details: `name one of them: ${distinct.join(', ')}`,
  })
}
