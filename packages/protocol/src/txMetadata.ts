import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import type { Hex } from './hex.ts'
import { anyCase, checked, data, type Infer, natural, object, parse, positive, wei } from './schema.ts'

const MAX_DATA_BYTES = 131_072

/** Decimals without leading zeros. */
const isAtMost = (value: string, most: string) =>
  value.length < most.length || (value.length === most.length && value <= most)

// @__NO_SIDE_EFFECTS__
function amount(bits: bigint) {
  const most = String((1n << bits) - 1n)
  return checked(wei, (value) => isAtMost(value, most))
}

/**
 * The fields of the EIP-1559 transaction of a digest. The access list is empty. Amounts are decimal strings in wei, because JSON numbers
 * are exact only up to 2^53.
 */
export const txMetadata = checked(
  object({
    chainId: positive,
    nonce: natural,
    to: anyCase(20),
    value: amount(256n),
    data: checked(data, (value) => value.length <= 2 + 2 * MAX_DATA_BYTES),
    gas: amount(64n),
    maxFeePerGas: amount(256n),
    maxPriorityFeePerGas: amount(256n),
  }),
  // EIP-1559: a transaction with a larger priority fee is invalid.
  ({ maxFeePerGas, maxPriorityFeePerGas }) => isAtMost(maxPriorityFeePerGas, maxFeePerGas),
)
export type TxMetadata = Infer<typeof txMetadata>

/** Narrows to metadata that describe a valid transaction. Hex may be in either case. */
export function assertTxMetadata(value: unknown): asserts value is TxMetadata {
  parse(txMetadata, value, invalid)
}

/** Parses metadata and writes hex in lower case: the form for storage and receipts. */
export function parseTxMetadata(value: unknown): TxMetadata {
  const metadata = parse(txMetadata, value, invalid)
  return { ...metadata, to: metadata.to.toLowerCase() as Hex, data: metadata.data.toLowerCase() as Hex }
}

function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_tx_metadata', 'invalid transaction metadata', { details })
}
