import { setImmediate } from 'node:timers/promises'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { RebuildReceipt } from '../publish/assembleReceipt.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'

export type WithReceiptsDeps = {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  rebuild: RebuildReceipt
  log: Pick<Log, 'warn'>
}

type Bytes = Uint8Array<ArrayBuffer>
type Dropped = { slug: string; cid: string }

/** Receipts that are rebuilt at one time, and how many may wait: anyone can ask for old proofs, and each takes a connection and the thread. */
const SLOTS = 2
const MAX_WAITING = 512

/**
 * The same store, with the receipts that left the database. Each is rebuilt once for all callers that ask for it meanwhile. Throws
 * `receipt_unavailable` if this release would write it otherwise: never another receipt, and never none.
 */
export function withReceipts({ store, rebuild, log }: WithReceiptsDeps): WithReceiptsDeps['store'] {
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

  async function rebuildPublished({ slug, cid }: Dropped): Promise<Bytes> {
    const rebuilt = await rebuild(slug)
    if (rebuilt?.cid === cid) return rebuilt.bytes
    log.warn({ msg: 'Could not rebuild a receipt', slug, cid })
    throw unavailable('this release would write it otherwise')
  }

  function readReceipt(dropped: Dropped): Promise<Bytes> {
    const { slug } = dropped
    const shared = pending.get(slug)
    if (shared !== undefined) return shared
    if (pending.size >= SLOTS + MAX_WAITING) throw unavailable('too many receipts are being rebuilt')
    const begun = rebuilds.add(dropped).finally(() => pending.delete(slug))
    pending.set(slug, begun)
    return begun
  }

  return {
    findProofStates: store.findProofStates,
    async findProof(slug) {
      const proof = await store.findProof(slug)
      if (proof?.isDropped !== true || proof.ipfsCid === null) return proof
      return { ...proof, receipt: await readReceipt({ slug: proof.slug, cid: proof.ipfsCid }) }
    },
  }
}

function unavailable(details: string) {
  return new CoordinatorError('receipt_unavailable', 'the receipt cannot be rebuilt now', { details })
}
