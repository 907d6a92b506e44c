import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import { createGatherer } from '../gather.ts'
import { untilAborted } from '../ipfs/pinError.ts'
import type { ReadBlock, Store } from '../ports.ts'
import { toReason } from '../toReason.ts'

export type WithReceiptsDeps = {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  /** Absent where this process knows no IPFS node. */
  readBlock?: ReadBlock | undefined
  log: Pick<Log, 'warn'>
  /** From the request for it to its bytes. */
  timeoutMs?: number
}

type Bytes = Uint8Array<ArrayBuffer>

const TIMEOUT_MS = 10_000
/** Reads from IPFS at one time, and how many more may wait for one. */
const READS = 32
const MAX_WAITING = 512

/**
 * The same store, with the receipts that are on IPFS alone. Each is read once for all who ask for it meanwhile. Throws
 * `receipt_unavailable` where IPFS does not give it back: never another receipt, and never none.
 */
export function withReceipts(deps: WithReceiptsDeps): WithReceiptsDeps['store'] {
  const { store, readBlock, log, timeoutMs = TIMEOUT_MS } = deps
  /** By CID. */
  const reading = new Map<string, Promise<Bytes>>()
  const reads = createGatherer<{ cid: string; signal: AbortSignal }, Bytes>({
    limit: 1,
    slots: READS,
    async run([asked], { answer }) {
      if (asked === undefined || readBlock === undefined) return
      const { cid, signal } = asked
      const value = await untilAborted(signal, () => readBlock(cid, { signal }))
      answer(asked, { status: 'fulfilled', value })
    },
  })

  async function read(slug: string, cid: string): Promise<Bytes> {
    try {
      return await reads.add({ cid, signal: AbortSignal.timeout(timeoutMs) })
    } catch (error) {
      log.warn({ msg: 'Could not read a receipt from IPFS', slug, cid, ...toReason(error) })
      throw unavailable('IPFS did not give it back')
    } finally {
      reading.delete(cid)
    }
  }

  function readReceipt(slug: string, cid: string): Promise<Bytes> {
    if (readBlock === undefined) throw unavailable('this coordinator has no IPFS node to read it from')
    const shared = reading.get(cid)
    if (shared !== undefined) return shared
    if (reading.size >= READS + MAX_WAITING) throw unavailable('too many receipts are being read')
    const begun = read(slug, cid)
    reading.set(cid, begun)
    return begun
  }

  return {
    findProofStates: store.findProofStates,
    async findProof(slug) {
      const proof = await store.findProof(slug)
      if (proof?.isDropped !== true || proof.ipfsCid === null) return proof
      return { ...proof, receipt: await readReceipt(slug, proof.ipfsCid) }
    },
  }
}

function unavailable(details: string) {
  return new CoordinatorError('receipt_unavailable', 'the receipt is on IPFS, and cannot be read now', { details })
}
