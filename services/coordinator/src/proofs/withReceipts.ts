import { setImmediate } from 'node:timers/promises'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { RebuildReceipt } from '../publish/assembleReceipt.ts'
import { untilAborted } from '../publish/ipfs/pinError.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import { toReason } from '../toReason.ts'

export type WithReceiptsDeps = {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  rebuild: RebuildReceipt
  log: Pick<Log, 'warn'>
  /** Time limit for rebuilding a receipt. */
  timeoutMs?: number
}

type Bytes = Uint8Array<ArrayBuffer>
type Dropped = { slug: string; cid: string; signal: AbortSignal }

const TIMEOUT_MS = 10_000

/**
 * Concurrent and waiting rebuilds. Anyone can request old proofs, and each rebuild takes a database connection and time on the main thread.
 */
const SLOTS = 2
const MAX_WAITING = 512

/**
 * Wraps a store so that it also returns receipts that were deleted from the database. Rebuilds a receipt once for all concurrent callers.
 * Throws `receipt_unavailable` if it can't be rebuilt with the same CID, or not in time.
 */
export function withReceipts(deps: WithReceiptsDeps): WithReceiptsDeps['store'] {
  const { store, rebuild, log, timeoutMs = TIMEOUT_MS } = deps
  const pending = new Map<string, Promise<Bytes>>()
  const rebuilds = createGatherer<Dropped, Bytes>({
    limit: 1,
    slots: SLOTS,
    async run([dropped], { answer }) {
      if (dropped === undefined) return
      // A rebuild blocks the main thread for a millisecond, so pending signatures run first.
      await setImmediate()
      answer(dropped, { status: 'fulfilled', value: await rebuildPublished(dropped) })
    },
  })

  async function rebuildPublished({ slug, cid, signal }: Dropped): Promise<Bytes> {
    try {
      const rebuilt = await untilAborted(signal, () => rebuild(slug))
      if (rebuilt?.cid === cid) return rebuilt.bytes
      throw unavailable('this release builds other bytes')
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'database_unavailable') throw error
      log.warn({ msg: 'Could not rebuild a receipt', slug, cid, ...toReason(error) })
      throw unavailable('it can’t be rebuilt from its rows')
    }
  }

  function readReceipt(slug: string, cid: string): Promise<Bytes> {
    const shared = pending.get(slug)
    if (shared !== undefined) return shared
    if (pending.size >= SLOTS + MAX_WAITING) throw unavailable('too many receipts are being rebuilt')
    const signal = AbortSignal.timeout(timeoutMs)
    const rebuilding = rebuilds.add({ slug, cid, signal }).finally(() => pending.delete(slug))
    pending.set(slug, rebuilding)
    return rebuilding
  }

  return {
    findProofStates: store.findProofStates,
    async findProof(slug) {
      const proof = await store.findProof(slug)
      if (proof?.isDropped !== true || proof.ipfsCid === null) return proof
      return { ...proof, receipt: await readReceipt(proof.slug, proof.ipfsCid) }
    },
  }
}

function unavailable(details: string) {
  return new CoordinatorError('receipt_unavailable', 'the receipt cannot be rebuilt now', { details })
}
