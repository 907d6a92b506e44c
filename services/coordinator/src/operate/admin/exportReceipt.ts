import { ReceiptError } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { assembleNamedBlocks, assembleReceipt, toBlock } from '../../publish/assembleReceipt.ts'
import { toReceiptCar } from '../../publish/ipfs/gateway.ts'
import { findPins } from '../../store/findPins.ts'
import { findCid } from '../../store/proofs.ts'
import type { Tables } from '../../store/tables.ts'
import { toReason } from '../../toReason.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The bytes of a file, or a sentence that says why there are none. */
type Exported = { bytes: Bytes } | { fault: string }

/**
 * Exports a receipt as a file for the verifier: version 1 as the receipt itself, version 2 as a CAR with all blocks that it names. For a
 * receipt that was never pinned, this is the only source.
 */
export async function exportReceipt(db: Kysely<Tables>, slug: string): Promise<Exported> {
  try {
    const [work] = await findPins(db, [slug])
    if (work === undefined) return { fault: 'No such proof.' }
    const { receipt: made, collateral, others } = assembleReceipt(work)
    // Frozen bytes are the bytes that were or will be pinned.
    const { cid, bytes } = work.receiptBytes === null ? made : toBlock(work.receiptBytes)
    const published = (await findCid(db, slug)) ?? cid
    if (cid !== published) {
      const fault = `The receipt is only on IPFS, as ${published}, and this release can't rebuild the same bytes. Fetch it from IPFS.`
      return { fault }
    }
    if (work.records.version === 1) return { bytes }
    const named = new Map([collateral, ...others].map((block) => [block.cid, block.bytes]))
    const car = await toReceiptCar({ getBlock: async (one) => named.get(one) }, cid, bytes)
    return car === undefined
      ? { fault: `The database doesn't have all blocks that the receipt ${cid} names.` }
      : { bytes: car }
  } catch (error) {
    if (!(error instanceof ReceiptError)) throw error
    return { fault: `Could not build the receipt: ${toReason(error).reason}.` }
  }
}

/** Exports the collateral that a proof's quote was verified with. */
export async function exportCollateral(db: Kysely<Tables>, slug: string): Promise<Exported> {
  const [work] = await findPins(db, [slug])
  return work === undefined ? { fault: 'No such proof.' } : { bytes: assembleNamedBlocks(work).collateral.bytes }
}
