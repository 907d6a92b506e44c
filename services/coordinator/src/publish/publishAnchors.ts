import { parseCheckpoint, parseNote } from '@countersign/log'
import { equalBytes, fromHex, type Hex, toHex, toLogId } from '@countersign/protocol'
import { createAnchor, MAX_ANCHOR_ENTRIES, toCidHash } from '@countersign/receipt'
import { CoordinatorError } from '../errors.ts'
import { isAhead } from '../isAhead.ts'
import type { AnchorStore, DueLog } from '../store/anchors.ts'
import { toReason } from '../toReason.ts'
import { ChainError } from './chain/chainError.ts'
import { encodeAdvance } from './chain/contract.ts'
import type { Call, Chain } from './chain/viemChain.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { pinAnchor } from './pin.ts'
import { assertWithinBudget, claimAndSend, type SendDeps, withMargin } from './send.ts'

/** The contract `LogWitness` and the account that registered the logs there. */
export type AnchorTarget = { contract: Hex; owner: Hex }

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
  /** The first failure of a log. */
  failure: unknown
}

/**
 * Publishes a checkpoint for each log with due proofs. Waits until the oldest of them is old enough or there are as many as fit. A log has at
 * most one checkpoint that isn't in a block.
 *
 * A failure of one log doesn't stop the others, even if a part of that log can't be read. A failure of the database stops all logs.
 */
export async function publishAnchors(
  deps: SendDeps & { anchoring: AnchorDeps },
  prepare: () => Promise<void>,
): Promise<AnchorRun> {
  const { clock, log: logger, anchoring } = deps
  const { anchors, delayMs } = anchoring
  const { maxAnchored } = anchors
  const run: AnchorRun = { waitMs: undefined, late: [], failure: undefined }
  const lookAgain = (ms: number) => (run.waitMs = Math.min(run.waitMs ?? ms, ms))
  const isWaiting = ({ count, since }: { count: number; since: number }) => {
    const again = { now: clock.now(), spanMs: delayMs }
    if (count >= maxAnchored || !isAhead(since + delayMs, again)) return false
    lookAgain(Math.min(since + delayMs - again.now, LOOK_EVERY_MS))
    return true
  }
  const { count, since } = await anchors.countDue()
  // Also counts proofs without a log entry, and those of logs that fail. So each log is checked again.
  if (since === undefined || isWaiting({ count, since })) return run
  const failed: number[] = []
  for (let isIncomplete = true; isIncomplete; ) {
    const logs = await anchors.findDueLogs({ except: failed })
    const isFull = logs.reduce((sum, { proofs }) => sum + proofs.length, 0) >= maxAnchored
    const known = failed.length
    for (const log of logs) {
      if (isWaiting({ count: log.proofs.length, since: log.since })) continue
      await prepare()
      try {
        const outcome = await publishAnchor(deps, { log, hasMore: isFull })
        if (outcome === 'waiting') lookAgain(LOOK_AGAIN_MS)
        if (outcome === 'late') run.late.push(...log.proofs.map(({ slug }) => slug))
      } catch (error) {
        // An empty account must not claim further nonces.
        const isUnpaid = error instanceof ChainError && error.code === 'insufficient_funds'
        if (isUnpaid || error instanceof CoordinatorError) throw error
        logger.warn({ msg: 'Could not publish a checkpoint', origin: log.origin, ...toReason(error) })
        run.failure ??= error
        failed.push(log.id)
      }
    }
    if (isFull) lookAgain(LOOK_AGAIN_MS)
    // The proofs of a failed log may have taken the place of others.
    isIncomplete = isFull && failed.length > known
  }
  return run
}

/** `waiting`: the previous checkpoint isn't in a block yet, or another worker was first. */
async function publishAnchor(
  deps: SendDeps & { anchoring: AnchorDeps },
  { log, hasMore }: { log: DueLog; hasMore: boolean },
): Promise<'sent' | 'waiting' | 'late'> {
  const { chain, anchoring } = deps
  const { anchors, pinner, target } = anchoring
  const { contract, owner } = target
  const { hash } = log
  const id = toLogId(owner, fromHex(hash))
  const head = await chain.readLog({ contract, id })
  if (head.publisher !== chain.account) {
    const found = /^0x0+$/.test(head.publisher)
      ? `not registered at ${contract} by ${owner}`
      : `the publisher is ${head.publisher}, not ${chain.account}`
    throw new ChainError('log_not_registered', { details: `${log.origin} (${id}): ${found}` })
  }
  // Also if this node is behind another one that knew a newer checkpoint.
  const newest = await anchors.findNewestAnchor({ chainId: chain.chainId, contract, logId: log.id, id })
  if (newest > head.size) return 'waiting'
  if (head.size > 0) await assertSameLog(anchors, { log, head })
  // The first checkpoint of a log starts at its oldest due proof, because everything before was published in another way.
  const from = head.size > 0 ? head.size : Math.min(...log.proofs.map(({ index }) => index))
  const source = await anchors.findAnchorSource({ log, hasMore, from, upTo: from + MAX_ANCHOR_ENTRIES })
  // An earlier checkpoint covers all due proofs, and the log hasn't grown since.
  if (source === undefined) return 'late'
  const { size, frontier, entries, note: checkpoint } = source
  const proofs = log.proofs.filter(({ index }) => index < size)
  const indexes = proofs.flatMap(({ index }) => (index < from ? index : []))
  const paths = await anchors.proveInclusions({ hash, size, indexes })
  const receipts = proofs.map(({ index, wallet, txHash, ipfsCid: cid }) => {
    const path = paths.get(index)
    return { index, wallet, txHash, cid, ...(path && { path }) }
  })
  const { block, parts } = createAnchor({ checkpoint, frontier, entries, receipts })
  const blockHash: Hex = `0x${toCidHash(block.cid)}`
  const consistency = head.size === 0 ? [] : await anchors.proveConsistency({ hash, oldSize: head.size, size })
  const { root } = parseCheckpoint(parseNote(checkpoint).text)
  const call = { to: contract, data: encodeAdvance({ id, size, root, block: blockHash, consistency }) }
  const gas = withMargin(await estimateGas(chain, call))
  // Checked first, because blocks of an unsent checkpoint stay pinned.
  await assertWithinBudget(deps, gas)
  await pinAnchor(pinner, { block, parts })
  const published = { logId: log.id, id, size, block: blockHash }
  const isSent = await claimAndSend(deps, { group: proofs, call, gas, anchor: { published, head: head.size } })
  if (!isSent) return 'waiting'
  anchoring.observeAnchor(log.origin, size)
  return 'sent'
}

/** A revert is the node's fault, or the head has just moved. No proof is at fault. */
async function estimateGas(chain: Chain, call: Call): Promise<bigint> {
  try {
    return await chain.estimateGas(call)
  } catch (error) {
    if (!(error instanceof ChainError) || error.code !== 'call_reverted') throw error
    throw new ChainError('chain_unavailable', { details: `the checkpoint would revert: ${error.details}` })
  }
}

/**
 * The contract accepts only one history, so a head of another log would reject all our checkpoints permanently. Only a publisher with our key
 * or a lying node can have a head beyond our log.
 */
async function assertSameLog(
  anchors: AnchorStore,
  { log, head }: { log: DueLog; head: { size: number; root: string } },
): Promise<void> {
  const root = await anchors.computeRoot({ id: log.id, hash: log.hash, size: head.size })
  if (root !== undefined && equalBytes(root, fromHex(head.root))) return
  const own = root === undefined ? 'fewer entries' : `the root 0x${toHex(root)}`
  const details = `at size ${head.size} of ${log.origin}, the chain has the root ${head.root}, the database ${own}`
  throw new ChainError('anchor_conflict', { details })
}
