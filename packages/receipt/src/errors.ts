import { ServiceError } from '@countersign/protocol'

/** Why bytes are not a receipt at all. The steps say what is wrong with a receipt. */
export type ReceiptErrorCode =
  | 'receipt_too_large'
  | 'receipt_not_canonical'
  | 'receipt_version_unsupported'
  | 'receipt_malformed'
  /** The file with the blocks of a receipt is not a CAR of ours. */
  | 'car_malformed'
  /** The file is a CAR, but a block in it was changed or replaced. */
  | 'car_mismatch'

export class ReceiptError extends ServiceError<ReceiptErrorCode> {
  override name = 'ReceiptError'
}
