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
  /** From the request for a receipt to its bytes. */
  timeoutMs?: number
}

type Bytes = Uint8Array<ArrayBuffer>
type Dropped = { slug: string; cid: string; signal: AbortSignal }

const TIMEOUT_MS = 10_000

/** Receipts that are rebuilt at one time, and how many may wait: anyone can ask for old proofs, and each takes a connection and the thread. */
const SLOTS = 2
const MAX_WAITING = 512

/**
 * The same store, with the receipts that left the database. Each is rebuilt once for all callers that ask for it meanwhile. Throws
 * `receipt_unavailable` if its rows do not give it, or not in time: never another receipt, and never none.
 */
export function withReceipts(deps: WithReceiptsDeps): WithReceiptsDeps['store'] {
  const { store, rebuild, log, timeoutMs = TIMEOUT_MS } = deps
  const pending = new Map<string, Promise<Bytes>>()
  const rebuilds = createGatherer<Dropped, Bytes>({
    limit: 1,
    slots: SLOTS,
    async run([asked], { answer }) {
      if (asked === undefined) return
      // Rebuilding one takes a millisecond of a thread that may sign, which comes first.
      await setImmediate()
      answer(asked, { status: 'fulfilled', value: await rebuildPublished(asked) })
    },
  })

  async function rebuildPublished({ slug, cid, signal }: Dropped): Promise<Bytes> {
    try {
      const rebuilt = await untilAborted(signal, () => rebuild(slug))
      if (rebuilt?.cid === cid) return rebuilt.bytes
      throw unavailable('this release would write it otherwise')
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'database_unavailable') throw error
      log.warn({ msg: 'Could not rebuild a receipt', slug, cid, ...toReason(error) })
      throw unavailable('its rows do not give it now')
    }
  }

  function readReceipt(slug: string, cid: string): Promise<Bytes> {
    const shared = pending.get(slug)
    if (shared !== undefined) return shared
    if (pending.size >= SLOTS + MAX_WAITING) throw unavailable('too many receipts are being rebuilt')
    const signal = AbortSignal.timeout(timeoutMs)
    const begun = rebuilds.add({ slug, cid, signal }).finally(() => pending.delete(slug))
    pending.set(slug, begun)
    return begun
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
