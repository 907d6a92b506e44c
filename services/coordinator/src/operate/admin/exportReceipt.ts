import { ReceiptError } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { assembleNamedBlocks, assembleReceipt, toBlock } from '../../publish/assembleReceipt.ts'
import { toReceiptCar } from '../../publish/ipfs/gateway.ts'
import { findPins } from '../../store/findPins.ts'
import { findCid } from '../../store/proofs.ts'
import type { Tables } from '../../store/tables.ts'
import { toReason } from '../../toReason.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The bytes of a file, or why there are none, as a sentence. */
type Exported = { bytes: Bytes } | { fault: string }

/**
 * A receipt as a file for the verifier. Of version 1 it is the receipt itself, of version 2 a CAR with all that it names: what was never
 * pinned can be had from nowhere else.
 */
export async function exportReceipt(db: Kysely<Tables>, slug: string): Promise<Exported> {
  try {
    const [work] = await findPins(db, [slug])
    if (work === undefined) return { fault: 'There is no such proof.' }
    const { receipt: made, collateral, others } = assembleReceipt(work)
    // Frozen bytes are what was, or will be, pinned.
    const { cid, bytes } = work.receiptBytes === null ? made : toBlock(work.receiptBytes)
    const published = (await findCid(db, slug)) ?? cid
    if (cid !== published) {
      const fault = `The receipt is on IPFS alone, as ${published}, and this program would write it otherwise. Get it there.`
      return { fault }
    }
    if (work.records.version === 1) return { bytes }
    const named = new Map([collateral, ...others].map((block) => [block.cid, block.bytes]))
    const car = await toReceiptCar({ getBlock: async (one) => named.get(one) }, cid, bytes)
    return car === undefined
      ? { fault: `The rows do not give all blocks that the receipt ${cid} names.` }
      : { bytes: car }
  } catch (error) {
    if (!(error instanceof ReceiptError)) throw error
    return { fault: `The receipt cannot be made: ${toReason(error).reason}.` }
  }
}

/** What the quote of a proof was verified with. */
export async function exportCollateral(db: Kysely<Tables>, slug: string): Promise<Exported> {
  const [work] = await findPins(db, [slug])
  return work === undefined
    ? { fault: 'There is no such proof.' }
    : { bytes: assembleNamedBlocks(work).collateral.bytes }
}
