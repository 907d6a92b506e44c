import { ServiceError } from '@countersign/protocol'
import { encodeReceiptCar } from '@countersign/receipt'
import type { Outcome } from '@countersign/verify'

/**
 * All blocks that were found, in one file. Undefined where they do not fit into one: a receipt may name a block twice, or one that
 * is too large, and its verdict must be shown all the same.
 */
export function toCar({
  bytes,
  blocks,
  collateral,
}: Pick<Outcome, 'bytes' | 'blocks' | 'collateral'>): Uint8Array<ArrayBuffer> | undefined {
  try {
    return encodeReceiptCar({ bytes, blocks, ...(collateral && { collateral: collateral.bytes }) })
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
