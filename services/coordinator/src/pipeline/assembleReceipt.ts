import { assemble, canonicalBytes, toCid } from '@countersign/receipt'
import type { Block } from '../ports.ts'
import type { PinWork } from '../store/pinning.ts'

/**
 * The two blocks of a proof: its receipt, and the collateral that the receipt names by CID. A pure function of what the signing
 * transaction stored. Throws `ReceiptError`, such as `receipt_too_large`.
 */
export function assembleReceipt({ records, collateral: bytes }: Pick<PinWork, 'records' | 'collateral'>): {
  receipt: Block
  collateral: Block
} {
  const collateral = toBlock(bytes)
  const receipt = assemble({ ...records, batch: { ...records.batch, collateral: collateral.cid } })
  return { receipt: toBlock(canonicalBytes(receipt)), collateral }
}

/** Bytes under the CID that is computed here. */
export function toBlock(bytes: Uint8Array<ArrayBuffer>): Block {
  return { cid: toCid(bytes), bytes }
}
