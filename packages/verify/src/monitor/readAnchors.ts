import { MAX_BLOCK_BYTES } from '@countersign/protocol'
import { getBlock, type Rpc, toQuantity } from '../createRpc.ts'
import { type Checkpoint, createAnchorFinder, type FindBlock, openAnchor, toPath } from '../findAnchors.ts'
import { getBlock as getIpfsBlock, orderGateways } from '../getBlock.ts'
import type { ManifestLogContract } from '../parseManifest.ts'
import type { AnchorsMemory } from './checkSteps.ts'
import type { Finding } from './findings.ts'
import { createLogTime, type MonitorDeps, type MonitorRequest, spendLogTime } from './monitorLogs.ts'

/** Slow gateways must leave time to read the logs. */
const SHARE_OF_TIME = 0.5

export type ReadAnchors = Pick<AnchorsMemory, 'events' | 'findings' | 'trees'> & {
  /** Whether all anchors were read. */
  isWhole: boolean
  /** The time of the last final block. Undefined if no log is listed. */
  finalTime: Date | undefined
}

/** Reads all new anchors of the listed logs, up to the final block. */
export async function readAnchors(
  deps: MonitorDeps,
  parameters: {
    rpc: Rpc
    contracts: readonly ManifestLogContract[]
    request: MonitorRequest
    memories: Map<string, AnchorsMemory>
  },
): Promise<ReadAnchors> {
  const { rpc, contracts, request, memories } = parameters
  const { address: wallet, gateways: own = [], api } = request
  const { now, logTime = createLogTime() } = deps
  const memory: AnchorsMemory = memories.get(wallet) ?? {
    nextBlock: 0,
    unread: new Set(),
    events: [],
    findings: [],
    trees: new Map(),
  }
  memories.set(wallet, memory)
  if (contracts.length === 0) return { ...memory, isWhole: true, finalTime: undefined }
  const bounds = { gateways: orderGateways({ own, api }), maxBytes: MAX_BLOCK_BYTES }
  const finder = createAnchorFinder(rpc, { contracts, isOver: () => false })
  const toBlock = await finder.getFinal()
  const { time: finalTime } = await getBlock(rpc, toQuantity(toBlock))
  const listed: Checkpoint[] = []
  for await (const some of finder.list({ fromBlock: memory.nextBlock, toBlock })) listed.push(...some)
  // Until it is read, a checkpoint stays unread, even if this run fails.
  for (const checkpoint of listed) memory.unread.add(checkpoint)
  // A node may be behind the one of the last run.
  memory.nextBlock = Math.max(memory.nextBlock, toBlock + 1)
  const faults: string[] = []
  await spendLogTime({ now, logTime, share: SHARE_OF_TIME }, async (isOver) => {
    const findBlock: FindBlock = (cid) => getIpfsBlock(deps, { cid, ...bounds })
    for (const checkpoint of [...memory.unread]) {
      const { contract, id, size, root, log } = checkpoint
      const isTried = !isOver()
      const { block, anchor, fault, isWithheld } = await openAnchor(checkpoint, { findBlock, isOver })
      if (isTried) memory.unread.delete(checkpoint)
      if (isWithheld) {
        faults.push(`of ${size} entries: ${fault}`)
        // At the end, if it was tried: the next run should first read those for which there was no time.
        memory.unread.add(checkpoint)
        continue
      }
      if (anchor === undefined) {
        memory.findings.push({ kind: 'anchor-contradicts', blockNumber: log.blockNumber, detail: fault })
        continue
      }
      const { origin } = anchor
      // An anchor that names another log must not hide the trees of this one.
      const key = `${contract} ${id} ${origin}`
      if ((memory.trees.get(key)?.size ?? 0) < size) memory.trees.set(key, { origin, size, root })
      for (const { index, txHash, cid } of anchor.receipts.filter((receipt) => receipt.wallet === wallet)) {
        const given = { contract, id, size, path: toPath(anchor, index) ?? [], block }
        memory.events.push({ txHash, ipfsCid: cid, log, anchor: { given, wallet } })
      }
    }
  })
  const [detail = ''] = faults
  const withheld: Finding = { kind: 'anchor-withheld', count: faults.length, detail }
  const isWhole = faults.length === 0
  return { ...memory, findings: [...(isWhole ? [] : [withheld]), ...memory.findings], isWhole, finalTime }
}
