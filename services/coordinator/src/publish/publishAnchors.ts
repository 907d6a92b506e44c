import { equalBytes, fromHex, toHex, toLogId, toPrefixedHex } from '@countersign/protocol'
import { createAnchor, MAX_ANCHOR_ENTRIES } from '@countersign/receipt'
import { sha256 } from '@noble/hashes/sha2.js'
import { isAhead } from '../isAhead.ts'
import { type AnchorStore, type DueLog, MAX_ANCHORED } from '../store/anchors.ts'
import { ChainError } from './chain/chainError.ts'
import { encodeAdvance } from './chain/contract.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { pinAnchor } from './pin.ts'
import { claimAndSend, type SendDeps, withMargin } from './send.ts'

/** The contract `LogWitness` and the account that registered the logs there. */
export type AnchorTarget = { contract: `0x${string}`; owner: `0x${string}` }

export type AnchorDeps = {
  anchors: AnchorStore
  pinner: Pick<Pinner, 'pin' | 'read'>
  target: AnchorTarget
  /** How long the oldest proof waits for others. */
  delayMs: number
  observeAnchor(origin: string, size: number): void
}

/** How soon to look again for a checkpoint that isn't in a block yet. */
const LOOK_AGAIN_MS = 2_000
/** How often to look whether as many proofs wait as fit into one anchor. */
const LOOK_EVERY_MS = 1_000

type AnchorRun = {
  /** When the next run is needed. */
  waitMs: number | undefined
  /** Slugs of proofs that no further checkpoint will list, because the log hasn't grown since the last one. */
  late: string[]
  failure: ChainError | undefined
}

/**
 * Publishes a checkpoint for each log with due proofs. Waits until the oldest of them is old enough or there are as many as fit. A log has at
 * most one checkpoint that isn't in a block.
 *
 * A failure of one log doesn't stop the others. Returns the first failure.
 */
export async function publishAnchors(
  deps: SendDeps & { anchoring: AnchorDeps },
  prepare: () => Promise<void>,
): Promise<AnchorRun> {
  const { clock, log: logger, anchoring } = deps
  const { anchors, delayMs } = anchoring
  const { count, since } = await anchors.countDue()
  const run: AnchorRun = { waitMs: undefined, late: [], failure: undefined }
  if (since === undefined) return run
  const again = { now: clock.now(), spanMs: delayMs }
  if (count < MAX_ANCHORED && isAhead(since + delayMs, again)) {
    return { ...run, waitMs: Math.min(since + delayMs - again.now, LOOK_EVERY_MS) }
  }
  await prepare()
  for (const log of await anchors.findDueLogs()) {
    try {
      const outcome = await publishAnchor(deps, log)
      if (outcome === 'waiting') run.waitMs = LOOK_AGAIN_MS
      if (outcome === 'late') run.late.push(...log.proofs.map(({ slug }) => slug))
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      logger.warn({
        msg: 'Could not publish a checkpoint',
        origin: log.origin,
        code: error.code,
        reason: error.details,
      })
      run.failure ??= error
    }
  }
  return run
}

/** `waiting`: the previous checkpoint isn't in a block yet. */
async function publishAnchor(
  deps: SendDeps & { anchoring: AnchorDeps },
  log: DueLog,
): Promise<'sent' | 'waiting' | 'late'> {
  const { chain, anchoring } = deps
  const { anchors, pinner, target } = anchoring
  const { contract } = target
  const id = toLogId(target.owner, fromHex(log.hash))
  const head = await chain.readLog({ contract, id })
  if (head.publisher !== chain.account) {
    throw new ChainError('log_not_registered', {
      details: `the publisher of ${log.origin} (${id}) is ${head.publisher}`,
    })
  }
  // Also if this node is behind another one that knew a newer checkpoint.
  if ((await anchors.findNewestAnchor(log.id)) > head.size) return 'waiting'
  const newest = await findSource(deps, { log, head })
  if (newest === undefined) return 'late'
  const { size } = newest
  await assertSameLog(deps, { log, head })
  const proofs = log.proofs.filter(({ index }) => index < size)
  const { from } = newest
  const receipts = await Promise.all(
    proofs.map(async ({ index, wallet, txHash, ipfsCid: cid }) => ({
      ...{ index, wallet, txHash, cid },
      ...(index < from && { path: await anchors.proveInclusion({ hash: log.hash, index, size }) }),
    })),
  )
  const { frontier, entries, note: checkpoint } = newest
  const { block, parts } = createAnchor({ checkpoint, frontier, entries, receipts })
  await pinAnchor(pinner, { block, parts })
  const blockHash = toPrefixedHex(sha256(block.bytes))
  const consistency =
    head.size === 0 ? [] : await anchors.proveConsistency({ hash: log.hash, oldSize: head.size, size })
  const root = await anchors.computeRoot({ hash: log.hash, size })
  const call = { to: contract, data: encodeAdvance({ id, size, root, block: blockHash, consistency }) }
  const gas = withMargin(await chain.estimateGas(call))
  const published = { logId: log.id, id, size, block: blockHash }
  await claimAndSend(deps, { group: proofs, call, gas, anchor: { published, head: head.size } })
  anchoring.observeAnchor(log.origin, size)
  return 'sent'
}

type Head = { size: number; root: string }

/**
 * The checkpoint to publish. The first one of a log starts at its oldest due proof, because everything before was published in another way.
 * Undefined if an earlier checkpoint covers all due proofs and the log hasn't grown since.
 */
async function findSource(
  { anchoring: { anchors } }: { anchoring: AnchorDeps },
  { log, head }: { log: DueLog; head: Head },
) {
  const from = head.size === 0 ? Math.min(...log.proofs.map(({ index }) => index)) : head.size
  const found = await anchors.findAnchorSource({ log, from, upTo: from + MAX_ANCHOR_ENTRIES })
  return found && { ...found, from }
}

/** The contract accepts only one history, so a head of another log would reject all our checkpoints permanently. */
async function assertSameLog(
  { anchoring: { anchors } }: { anchoring: AnchorDeps },
  { log, head }: { log: DueLog; head: Head },
): Promise<void> {
  if (head.size === 0) return
  const root = await anchors.computeRoot({ hash: log.hash, size: head.size })
  if (equalBytes(root, fromHex(head.root))) return
  const details = `${log.origin} has the root ${toHex(root)} at size ${head.size}, the chain ${head.root}`
  throw new ChainError('anchor_conflict', { details })
}
