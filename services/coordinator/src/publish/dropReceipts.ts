import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '@countersign/service'
import type { HeldReceipt, RetentionStore } from '../store/retention.ts'
import type { Clock } from '../system.ts'
import { toReason } from '../toReason.ts'
import type { RebuildReceipt } from './assembleReceipt.ts'
import { PinError, untilAborted } from './ipfs/pinError.ts'
import type { Pinner } from './ipfs/pinner.ts'

export type DropDeps = {
  store: RetentionStore
  pinner: Pick<Pinner, 'readPinned'>
  rebuild: RebuildReceipt
  clock: Clock
  log: Log
  /** Since the signing. */
  retentionMs: number
  /** Receipts that are looked for in one statement, and dropped in one. */
  pageSize?: number
  createDeadline?(): AbortSignal
}

type Dropper = {
  /**
   * One round: some thousands at most. Whatever it throws, each receipt is either here or was read back from where it is pinned. As kept count
   * those that are still here an hour after they could first not be dropped.
   */
  run(): Promise<{ dropped: number; kept: number }>
  /** Begins no further read. */
  stop(): void
}

/** One that could not be dropped, and why. */
type LeftReceipt = { receipt: HeldReceipt; reason: string }

const PAGE_SIZE = 256
const MAX_PAGES = 16
/** Reads that are under way at one time. */
const READS = 32
const createTimeout = () => AbortSignal.timeout(10_000)
/** What could not be dropped is looked at again after that. */
const AGAIN_MS = 3_600_000
/** Today's program would write it otherwise, or not at all: then the service can only answer with these bytes. */
const MADE_OTHERWISE = 'made_otherwise'

/**
 * Drops receipts that are old enough from the database, each only after the service that pins it said so again and gave back
 * the same bytes under its CID, and where its rows can give them once more. Any number of
 * workers may do it, and each may die at any moment: a receipt goes in the one statement that follows its read.
 */
export function createDropper(deps: DropDeps): Dropper {
  const { store, pinner, rebuild, clock, log, retentionMs, pageSize = PAGE_SIZE, createDeadline = createTimeout } = deps
  let after = '-1'
  let restartAt = clock.now() + AGAIN_MS
  let isStopped = false
  /** Since when receipts could not be dropped: what this way through all of them has found, and the one before. */
  let refused = new Map<string, number>()
  let refusedBefore = refused

  /** At first a receipt may only be pinned elsewhere: each worker may have a node of its own, and drops what is there. */
  function isKept({ slug }: HeldReceipt, now: number): boolean {
    const since = refusedBefore.get(slug) ?? now
    refused.set(slug, since)
    return now - since >= AGAIN_MS
  }

  /** Undefined where its rows give it and IPFS has it; otherwise why it stays. */
  async function findReason({ slug, cid, hash: expected }: HeldReceipt): Promise<string | undefined> {
    try {
      // Making one takes a millisecond of a thread that may sign, which comes first.
      await setImmediate()
      if ((await rebuild(slug))?.cid !== cid) return MADE_OTHERWISE
    } catch {
      return MADE_OTHERWISE
    }
    try {
      const signal = createDeadline()
      const held = await untilAborted(signal, () => pinner.readPinned(cid, { signal }))
      return hash('sha256', held) === expected ? undefined : 'pin_mismatch'
    } catch (error) {
      return error instanceof PinError ? error.code : toReason(error).code
    }
  }

  async function dropPage(receipts: readonly HeldReceipt[]): Promise<{ dropped: number; left: LeftReceipt[] }> {
    const found: HeldReceipt[] = []
    const left: LeftReceipt[] = []
    const queue = receipts.values()
    const readAll = async () => {
      for (const receipt of queue) {
        if (isStopped) return
        const reason = await findReason(receipt)
        if (reason === undefined) found.push(receipt)
        else left.push({ receipt, reason })
      }
    }
    await Promise.all(Array.from({ length: READS }, readAll))
    return { dropped: await store.dropReceipts(found.map(({ slug }) => slug)), left }
  }

  return {
    async run() {
      const now = clock.now()
      if (now >= restartAt) {
        after = '-1'
        restartAt = now + AGAIN_MS
        refusedBefore = refused
        refused = new Map()
      }
      const reasons: string[] = []
      let dropped = 0
      for (let page = 0; page < MAX_PAGES && !isStopped; page++) {
        const { receipts, last, isOver } = await store.listHeld({ after, before: now - retentionMs, limit: pageSize })
        const done = await dropPage(receipts)
        dropped += done.dropped
        reasons.push(...done.left.filter(({ receipt }) => isKept(receipt, now)).map(({ reason }) => reason))
        after = last
        // A service that gives back nothing is down: asking it for thousands more would not help it.
        if (isOver || (done.dropped === 0 && done.left.some(({ reason }) => reason !== MADE_OTHERWISE))) break
      }
      if (dropped > 0) log.info({ msg: 'Dropped receipts that IPFS holds', count: dropped })
      const lost = reasons.filter((reason) => reason !== MADE_OTHERWISE)
      const otherwise = reasons.length - lost.length
      if (lost.length > 0) {
        log.warn({ msg: 'Kept receipts that IPFS did not give back', count: lost.length, reason: toSummary(lost) })
      }
      if (otherwise > 0) log.warn({ msg: 'Kept receipts that their rows do not give', count: otherwise })
      return { dropped, kept: reasons.length }
    },
    stop() {
      isStopped = true
    },
  }
}

/** Such as `pin_not_found (12), pin_unavailable (1)`. */
function toSummary(reasons: readonly string[]): string {
  return [...Map.groupBy(reasons, (reason) => reason)].map(([reason, all]) => `${reason} (${all.length})`).join(', ')
}
