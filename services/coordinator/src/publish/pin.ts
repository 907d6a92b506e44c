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
  /** From [0, 1), for the jitter; nothing depends on its being secret. */
  random: () => number
  log: Log
  /** Since the proof's creation. Until then no number of failures makes it `pin_failed`. */
  pinDeadlineMs: number
  /** Of one attempt, all its calls together. */
  timeoutMs?: number
}

/**
 * - `pinned`: the proof is now `pending_onchain`, by this call
 * - `retried`: it stays `pending_pin`, with a job for the next attempt
 * - `failed`: it is `pin_failed`
 * - `skipped`: there was nothing to do, or another worker has done it
 */
export type PinOutcome = 'pinned' | 'retried' | 'failed' | 'skipped'

type PinStage = {
  /** One attempt. What it throws, such as `database_unavailable`, could not be recorded: the job queue tries again. */
  pin(slug: string): Promise<PinOutcome>
}

type PinFailure = PinErrorCode | ReceiptErrorCode | 'internal'

const TIMEOUT_MS = 30_000
/** A deadline can pass while no worker runs; the service still gets its chances. */
const LEAST_ATTEMPTS = 12
/** Collaterals change a few times a day, for each platform; batches with their releases go on for as long as their proofs take. */
const MAX_KNOWN = 64
/** The service may lose what it holds and say nothing, as one whose disk was replaced: what is still in use is looked for again. */
const KNOWN_MS = 300_000

/**
 * Puts receipts on IPFS. What a proof's row holds is frozen before the first pin, so that any number of attempts, by any number
 * of workers, pin the same bytes.
 */
export function createPinStage(deps: PinDeps): PinStage {
  const { store, clock, log, timeoutMs = TIMEOUT_MS } = deps
  /** Blocks that receipts share, by CID, which are or will be pinned and read back: thousands of receipts have one collateral. */
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
      // Ends in time even if the pinner does not heed the signal.
      await untilAborted(signal, () => pinBlocks(shared, receipt, signal))
      const isFirst = await store.completePin({ slug, cid: receipt.cid, now: clock.now() })
      if (!isFirst) return 'skipped'
      log.info({ msg: 'Pinned receipt', slug, cid: receipt.cid, durationMs: clock.now() - startedAt })
      return 'pinned'
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'database_unavailable') throw error
      // The service may have lost what it held; the next attempt looks.
      for (const { cid } of shared) known.delete(cid)
      return recordFailure(work, error)
    }
  }

  /** The blocks to pin. A receipt that was frozen before may be public by now: it stays, whatever would be assembled today. */
  async function freeze(work: PinWork): Promise<ReceiptBlocks> {
    const { slug, receiptBytes } = work
    const assembled = assembleReceipt(work, toReleaseBlocks)
    const frozen = receiptBytes ?? (await store.freezeReceipt({ slug, bytes: assembled.receipt.bytes }))
    if (equalBytes(frozen, assembled.receipt.bytes)) return assembled
    const receipt = toBlock(frozen)
    log.warn({ msg: 'Kept a frozen receipt that differs from the assembled one', slug, cid: receipt.cid })
    return { ...assembled, receipt }
  }

  /** Each before the one that names it: a reader of any of them can then get what it names. */
  async function pinBlocks(shared: readonly Block[], receipt: Block, signal: AbortSignal) {
    for (const block of shared) {
      signal.throwIfAborted()
      await pinShared(block)
    }
    await pinBlock(deps.pinner, receipt, signal)
  }

  /** Once for all that need it at one time. What was pinned first is forgotten first, however often it is used. */
  function pinShared(block: Block): Promise<void> {
    const { cid } = block
    const now = clock.now()
    const before = known.get(cid)
    if (before !== undefined && isAhead(before.until, { now, spanMs: KNOWN_MS })) return before.pinned
    const pinned = pinAlone(block)
    known.delete(cid)
    known.set(cid, { pinned, until: now + KNOWN_MS })
    for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
    return pinned
  }

  /** With a limit of its own: the attempt that began it may be over while others still wait. */
  function pinAlone(block: Block): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    return untilAborted(signal, () => pinBlock(deps.pinner, block, signal))
  }

  async function recordFailure({ slug, attempts, createdAt }: PinWork, error: unknown): Promise<PinOutcome> {
    const now = clock.now()
    const attempt = attempts + 1
    const failure = toFailure(error)
    // Only the name of errors that are not ours: their messages could hold anything.
    const { code, reason = code } = toReason(error)
    const isOver = now - createdAt >= deps.pinDeadlineMs && attempt >= LEAST_ATTEMPTS
    // The records never change, and neither does their size.
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

/**
 * Puts the policy of a vault on IPFS, so that the vault's address may be shown. What it throws makes the job queue try again, and
 * the sweep once that gives up.
 */
export async function pinPolicy({ store, pinner, clock }: PinPolicyDeps, hash: string): Promise<'pinned' | 'skipped'> {
  const bytes = await store.findPolicy(hash)
  if (bytes === undefined) return 'skipped'
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  await untilAborted(signal, () => pinBlock(pinner, toBlock(bytes), signal))
  await store.completePolicy({ hash, now: clock.now() })
  return 'pinned'
}

/** Pins a block, and reads it back from where it is held. */
async function pinBlock(pinner: Pick<Pinner, 'pin' | 'read'>, block: Block, signal: AbortSignal): Promise<void> {
  await pinner.pin(block, { signal })
  const held = await pinner.read(block.cid, { signal })
  if (!equalBytes(held, block.bytes)) throw new PinError('pin_mismatch', { details: 'other bytes' })
}
