import { ServiceError } from '@countersign/protocol'

/** Why bytes are not a receipt. Faults of a receipt are reported in its steps. */
export type ReceiptErrorCode =
  | 'receipt_too_large'
  | 'receipt_not_canonical'
  | 'receipt_version_unsupported'
  | 'receipt_malformed'
  /** The file is not a CAR with the blocks of one receipt. */
  | 'car_malformed'
  /** The file is a CAR, but a block in it was changed or replaced. */
  | 'car_mismatch'
  /** The blocks are not a complete anchor, or their entries don't lead to its checkpoint. */
  | 'anchor_invalid'

export class ReceiptError extends ServiceError<ReceiptErrorCode> {
  override name = 'ReceiptError'
}
