import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '@countersign/service'
import type { RetentionStore, StoredReceipt } from '../store/retention.ts'
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
  /** Counts from the signing. */
  retentionMs: number
  /** Receipts per select and per delete statement. */
  pageSize?: number
  createDeadline?(): AbortSignal
}

type Dropper = {
  /**
   * Drops at most a few thousand receipts. Even if it throws, it has read back every dropped receipt from its pin. `kept` counts receipts
   * that could not be dropped for an hour.
   */
  run(): Promise<{ dropped: number; kept: number }>
  /** Starts no further read. */
  stop(): void
}

/** A receipt that could not be dropped. */
type SkippedReceipt = { receipt: StoredReceipt; reason: string }

const PAGE_SIZE = 256
const MAX_PAGES = 16
/** Concurrent reads. */
const READS = 32
const createTimeout = () => AbortSignal.timeout(10_000)
/** When to retry receipts that could not be dropped. */
const RETRY_MS = 3_600_000
/** This release would rebuild other bytes or none, so the service needs the stored bytes. */
const NOT_REBUILT = 'not_rebuilt'

/**
 * Drops old receipts from the database. Each must first be rebuilt from its rows, reported as pinned by the pin service, and read back
 * unchanged. Any number of workers may run this and die at any moment, because one statement after the read drops the receipts.
 */
export function createDropper(deps: DropDeps): Dropper {
  const { store, pinner, rebuild, clock, log, retentionMs, pageSize = PAGE_SIZE, createDeadline = createTimeout } = deps
  let after = '-1'
  let restartAt = clock.now() + RETRY_MS
  let isStopped = false
  /** Since when receipts could not be dropped, in this pass over all receipts and in the previous one. */
  let refused = new Map<string, number>()
  let refusedBefore = refused

  /** Not counted at first: each worker may have its own node and drops only the receipts there. */
  function isKeptLong({ slug }: StoredReceipt, now: number): boolean {
    const since = refusedBefore.get(slug) ?? now
    refused.set(slug, since)
    return now - since >= RETRY_MS
  }

  /** Returns why a receipt must stay, or undefined if it can be dropped. */
  async function findReason({ slug, cid, hash: expected }: StoredReceipt): Promise<string | undefined> {
    try {
      // Rebuilding takes a millisecond. Lets sign requests on this thread go first.
      await setImmediate()
      if ((await rebuild(slug))?.cid !== cid) return NOT_REBUILT
    } catch {
      return NOT_REBUILT
    }
    try {
      const signal = createDeadline()
      const held = await untilAborted(signal, () => pinner.readPinned(cid, { signal }))
      return hash('sha256', held) === expected ? undefined : 'pin_mismatch'
    } catch (error) {
      return error instanceof PinError ? error.code : toReason(error).code
    }
  }

  async function dropPage(receipts: readonly StoredReceipt[]): Promise<{ dropped: number; kept: SkippedReceipt[] }> {
    const found: StoredReceipt[] = []
    const kept: SkippedReceipt[] = []
    const queue = receipts.values()
    const readAll = async () => {
      for (const receipt of queue) {
        if (isStopped) return
        const reason = await findReason(receipt)
        if (reason === undefined) found.push(receipt)
        else kept.push({ receipt, reason })
      }
    }
    await Promise.all(Array.from({ length: READS }, readAll))
    return { dropped: await store.dropReceipts(found.map(({ slug }) => slug)), kept }
  }

  return {
    async run() {
      const now = clock.now()
      if (now >= restartAt) {
        after = '-1'
        restartAt = now + RETRY_MS
        refusedBefore = refused
        refused = new Map()
      }
      const reasons: string[] = []
      let dropped = 0
      for (let page = 0; page < MAX_PAGES && !isStopped; page++) {
        const { receipts, last, isOver } = await store.listStored({ after, before: now - retentionMs, limit: pageSize })
        const done = await dropPage(receipts)
        dropped += done.dropped
        reasons.push(...done.kept.filter(({ receipt }) => isKeptLong(receipt, now)).map(({ reason }) => reason))
        after = last
        // If the service returns nothing, it is down. Don't ask it for thousands more.
        if (isOver || (done.dropped === 0 && done.kept.some(({ reason }) => reason !== NOT_REBUILT))) break
      }
      if (dropped > 0) log.info({ msg: 'Dropped receipts that IPFS holds', count: dropped })
      const lost = reasons.filter((reason) => reason !== NOT_REBUILT)
      const notRebuilt = reasons.length - lost.length
      if (lost.length > 0) {
        log.warn({ msg: 'Kept receipts that IPFS did not return', count: lost.length, reason: toSummary(lost) })
      }
      if (notRebuilt > 0) log.warn({ msg: 'Kept receipts that could not be rebuilt', count: notRebuilt })
      return { dropped, kept: reasons.length }
    },
    stop() {
      isStopped = true
    },
  }
}

/** For example `pin_not_found (12), pin_unavailable (1)`. */
function toSummary(reasons: readonly string[]): string {
  return [...Map.groupBy(reasons, (reason) => reason)].map(([reason, all]) => `${reason} (${all.length})`).join(', ')
}
