import { MAX_BLOCK_BYTES } from '@countersign/protocol'
import type { LogContract } from '@countersign/receipt'
import type { FetchBytes } from '../fetchBytes.ts'
import { type AnchorFinder, type Checkpoint, isCounted, openAnchor, toPath } from '../findAnchors.ts'
import { getBlock } from '../getBlock.ts'
import type { Finding } from './findings.ts'
import type { WalletEvent } from './listEvents.ts'

/** The root of a log at a size, as the chain has it. */
export type AnchoredTree = { origin: string; size: number; root: string }

/** What earlier runs read from anchors. */
export type AnchorsMemory = {
  /** All checkpoints in blocks before this one are known. */
  nextBlock: number
  /** Checkpoints whose anchors were not read. */
  unread: Checkpoint[]
  /** The wallet's receipts in anchors. */
  events: WalletEvent[]
  /** Invalid anchors. */
  findings: Finding[]
  /** By contract and id. The origin is undefined until an anchor shows it. */
  newest: Map<string, Omit<AnchoredTree, 'origin'> & { origin?: string }>
}

export function createAnchorsMemory(): AnchorsMemory {
  return { nextBlock: 0, unread: [], events: [], findings: [], newest: new Map() }
}

export type ReadAnchorsParameters = {
  finder: AnchorFinder
  contracts: readonly LogContract[]
  wallet: string
  gateways: readonly string[]
  memory: AnchorsMemory
  /** Whether the time for reading is over. */
  isOver: () => boolean
}

export type ReadAnchors = {
  /** The wallet's receipts in all anchors. */
  events: readonly WalletEvent[]
  findings: readonly Finding[]
  trees: readonly AnchoredTree[]
}

/** Reads all new anchors of the listed logs, up to the final block. */
export async function readAnchors(
  deps: { fetchBytes: FetchBytes },
  { finder, contracts, wallet, gateways, memory, isOver }: ReadAnchorsParameters,
): Promise<ReadAnchors> {
  const toBlock = await finder.getFinal()
  const listed = [...memory.unread]
  for await (const some of finder.list({ fromBlock: memory.nextBlock, toBlock })) {
    listed.push(...some.filter((checkpoint) => isCounted(contracts, checkpoint)))
  }
  memory.unread = []
  memory.nextBlock = toBlock + 1
  let left = 0
  const problems: string[] = []
  for (const checkpoint of listed) {
    const { contract, id, size, root, log } = checkpoint
    const key = `${contract} ${id}`
    const known = memory.newest.get(key)
    if (known === undefined || known.size < size) memory.newest.set(key, { ...known, size, root })
    const opened = isOver()
      ? undefined
      : await openAnchor(checkpoint, (cid) => getBlock(deps, { cid, gateways, maxBytes: MAX_BLOCK_BYTES }))
    if (opened === undefined) left += 1
    else if (opened.isWithheld) problems.push(`of ${size} entries: ${opened.fault}`)
    if (opened === undefined || opened.isWithheld) {
      memory.unread.push(checkpoint)
      continue
    }
    const { block, anchor } = opened
    if (anchor === undefined) {
      memory.findings.push({ kind: 'anchor-contradicts', blockNumber: log.blockNumber, detail: opened.fault })
      continue
    }
    const newest = memory.newest.get(key)
    if (newest !== undefined) newest.origin = anchor.origin
    for (const { index, txHash, cid } of anchor.receipts.filter((receipt) => receipt.wallet === wallet)) {
      const given = { contract, id, size, path: toPath(anchor, index) ?? [], block }
      memory.events.push({ txHash, ipfsCid: cid, log, anchor: { given, wallet } })
    }
  }
  if (left > 0) problems.push(`${left} were left for the next run`)
  const [detail] = problems
  const withheld: Finding = { kind: 'anchor-withheld', count: memory.unread.length, ...(detail && { detail }) }
  return {
    events: memory.events,
    findings: [...(memory.unread.length === 0 ? [] : [withheld]), ...memory.findings],
    trees: [...memory.newest.values()].flatMap(({ origin, ...tree }) =>
      origin === undefined ? [] : [{ origin, ...tree }],
    ),
  }
}
