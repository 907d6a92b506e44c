import { equalBytes } from '@countersign/protocol'
import { ReceiptError, type ReceiptErrorCode } from '@countersign/receipt'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import { isAhead } from '../isAhead.ts'
import type { PinWork } from '../store/findPins.ts'
import type { PinningStore } from '../store/pinning.ts'
import type { Clock } from '../system.ts'
import { toReason } from '../toReason.ts'
import { assembleReceipt, createReleaseAssembler, type ReceiptBlocks, toBlock } from './assembleReceipt.ts'
import { PinError, type PinErrorCode, untilAborted } from './ipfs/pinError.ts'
import type { Block, Pinner } from './ipfs/pinner.ts'
import { toBackoffMs } from './repeat.ts'

export type PinDeps = {
  store: Pick<PinningStore, 'findPin' | 'freezeReceipt' | 'completePin' | 'recordPinFailure'>
  pinner: Pick<Pinner, 'pin' | 'read'>
  clock: Clock
  /** Returns a number in [0, 1) for the jitter. Needn't be secret. */
  random: () => number
  log: Log
  /** Counts from the proof's creation. Before it, failures never make the proof `pin_failed`. */
  pinDeadlineMs: number
  /** Limit of one attempt with all its calls. */
  timeoutMs?: number
}

/**
 * - `pinned`: this call made the proof `pending_onchain`
 * - `retried`: it stays `pending_pin`, with a job for the next attempt
 * - `failed`: it is `pin_failed`
 * - `skipped`: nothing to do, or another worker did it
 */
export type PinOutcome = 'pinned' | 'retried' | 'failed' | 'skipped'

type PinStage = {
  /** Makes one attempt. Throws only if the outcome can't be recorded, such as `database_unavailable`; the job queue retries. */
  pin(slug: string): Promise<PinOutcome>
}

type PinFailure = PinErrorCode | ReceiptErrorCode | 'internal'

const TIMEOUT_MS = 30_000
/** An anchor of a long backlog has hundreds of parts. */
const PARTS_AT_ONCE = 8
/** A deadline can pass while no worker runs, so a minimum of attempts is required too. */
const LEAST_ATTEMPTS = 12
/** Collateral changes a few times a day per platform. Batches and releases are in use while their proofs are pending. */
const MAX_KNOWN = 64
/** The service may lose blocks without notice, so shared blocks are pinned again after this time. */
const KNOWN_MS = 300_000

/** Pins receipts. Freezes a receipt's bytes before the first pin, so that all attempts of all workers pin the same bytes. */
export function createPinStage(deps: PinDeps): PinStage {
  const { store, clock, log, timeoutMs = TIMEOUT_MS } = deps
  /** Shared blocks by CID that are or will be pinned and read back. Thousands of receipts share one collateral. */
  const known = new Map<string, { pinned: Promise<void>; until: number }>()
  const toReleaseBlocks = createReleaseAssembler()

  async function pin(slug: string): Promise<PinOutcome> {
    const startedAt = clock.now()
    const work = await store.findPin(slug)
    if (work?.status !== 'pending_pin') return 'skipped'
    let shared: readonly Block[] = []
    try {
      const { receipt, ...named } = await freeze(work)
      shared = [named.collateral, ...named.others]
      const signal = AbortSignal.timeout(timeoutMs)
      // Ends in time even if the pinner ignores the signal.
      await untilAborted(signal, () => pinBlocks(shared, receipt, signal))
      const isFirst = await store.completePin({ slug, cid: receipt.cid, now: clock.now() })
      if (!isFirst) return 'skipped'
      log.info({ msg: 'Pinned receipt', slug, cid: receipt.cid, durationMs: clock.now() - startedAt })
      return 'pinned'
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'database_unavailable') throw error
      // The service may have lost them, so the next attempt pins them again.
      for (const { cid } of shared) known.delete(cid)
      return recordFailure(work, error)
    }
  }

  /** Returns the blocks to pin. A frozen receipt may be public already, so it is kept even if it would be assembled differently now. */
  async function freeze(work: PinWork): Promise<ReceiptBlocks> {
    const { slug, receiptBytes } = work
    const assembled = assembleReceipt(work, toReleaseBlocks)
    const frozen = receiptBytes ?? (await store.freezeReceipt({ slug, bytes: assembled.receipt.bytes }))
    if (equalBytes(frozen, assembled.receipt.bytes)) return assembled
    const receipt = toBlock(frozen)
    log.warn({ msg: 'Kept a frozen receipt that differs from the assembled one', slug, cid: receipt.cid })
    return { ...assembled, receipt }
  }

  /** Pins each block before the block that names it, so that readers can always follow the names. */
  async function pinBlocks(shared: readonly Block[], receipt: Block, signal: AbortSignal) {
    for (const block of shared) {
      signal.throwIfAborted()
      await pinShared(block)
    }
    await pinBlock(deps.pinner, receipt, signal)
  }

  /** Shares one pin among concurrent callers. Forgets the oldest pin first, however often it is used. */
  function pinShared(block: Block): Promise<void> {
    const { cid } = block
    const now = clock.now()
    const before = known.get(cid)
    if (before !== undefined && isAhead(before.until, { now, spanMs: KNOWN_MS })) return before.pinned
    const pinned = pinWithTimeout(block)
    known.delete(cid)
    known.set(cid, { pinned, until: now + KNOWN_MS })
    for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
    return pinned
  }

  /** Has a separate time limit, because the attempt that started it may end while others wait. */
  function pinWithTimeout(block: Block): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    return untilAborted(signal, () => pinBlock(deps.pinner, block, signal))
  }

  async function recordFailure({ slug, attempts, createdAt }: PinWork, error: unknown): Promise<PinOutcome> {
    const now = clock.now()
    const attempt = attempts + 1
    const failure = toFailure(error)
    // For foreign errors only the name, because their messages may contain secrets.
    const { code, reason = code } = toReason(error)
    const isOver = now - createdAt >= deps.pinDeadlineMs && attempt >= LEAST_ATTEMPTS
    // Retrying doesn't help: the records never change.
    if (isOver || failure === 'receipt_too_large') {
      await store.recordPinFailure({ slug, failure, now })
      log.error({ msg: 'Gave up pinning a receipt', slug, code: failure, attempt, reason })
      return 'failed'
    }
    const delayMs = Math.round(toBackoffMs({ attempt: attempts, random: deps.random }))
    await store.recordPinFailure({ slug, failure, now, retryAt: now + delayMs })
    log.warn({ msg: 'Could not pin a receipt', slug, code: failure, attempt, delayMs, reason })
    return 'retried'
  }

  return { pin }
}

function toFailure(error: unknown): PinFailure {
  return error instanceof PinError || error instanceof ReceiptError ? error.code : 'internal'
}

type PinPolicyDeps = {
  store: Pick<PinningStore, 'findPolicy' | 'completePolicy'>
  pinner: Pick<Pinner, 'pin' | 'read'>
  clock: Clock
}

/** Pins a vault's policy, so that the vault's address may be shown. The job queue retries errors, and the sweep queues dropped jobs. */
export async function pinPolicy({ store, pinner, clock }: PinPolicyDeps, hash: string): Promise<'pinned' | 'skipped'> {
  const bytes = await store.findPolicy(hash)
  if (bytes === undefined) return 'skipped'
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  await untilAborted(signal, () => pinBlock(pinner, toBlock(bytes), signal))
  await store.completePolicy({ hash, now: clock.now() })
  return 'pinned'
}

/** Pins the parts of an anchor, a few at once, then the block that names them, and reads all of them back. */
export async function pinAnchor(
  pinner: Pick<Pinner, 'pin' | 'read'>,
  { block, parts }: { block: Block; parts: readonly Block[] },
): Promise<void> {
  async function pinAll(blocks: readonly Block[]) {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    await untilAborted(signal, () => Promise.all(blocks.map((one) => pinBlock(pinner, one, signal))))
  }
  for (let start = 0; start < parts.length; start += PARTS_AT_ONCE) {
    await pinAll(parts.slice(start, start + PARTS_AT_ONCE))
  }
  await pinAll([block])
}

/** Pins a block and reads it back. */
async function pinBlock(pinner: Pick<Pinner, 'pin' | 'read'>, block: Block, signal: AbortSignal): Promise<void> {
  await pinner.pin(block, { signal })
  const read = await pinner.read(block.cid, { signal })
  if (!equalBytes(read, block.bytes)) throw new PinError('pin_mismatch', { details: 'other bytes' })
}
