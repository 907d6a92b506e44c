import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isNatural } from './fields.ts'
import type { Hex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'
import { hasExactMembers } from './plainObject.ts'

/**
 * The fields of the EIP-1559 transaction that a digest stands for; they travel beside it. The access list is empty. Amounts
 * are decimal strings in wei, since JSON numbers end at 2^53.
 */
export type TxMetadata = {
  chainId: number
  nonce: number
  to: Hex
  value: string
  data: Hex
  gas: string
  maxFeePerGas: string
  maxPriorityFeePerGas: string
}

const MEMBERS = ['chainId', 'nonce', 'to', 'value', 'data', 'gas', 'maxFeePerGas', 'maxPriorityFeePerGas'] as const
const MAX_DATA_BYTES = 131_072
/** 2^256 has 78 digits. The bound keeps BigInt from reading megabytes. */
const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/

/** Narrows to metadata from which one transaction can be built. Hex digits may be of either case. */
export function assertTxMetadata(value: unknown): asserts value is TxMetadata {
  if (!hasExactMembers(value, MEMBERS)) throw invalid('not exactly the expected members')
  const { chainId, nonce, to, data } = value
  if (!isNatural(chainId) || chainId === 0) throw invalid('chainId is not a positive integer below 2^53')
  if (!isNatural(nonce)) throw invalid('nonce is not an integer from 0 to 2^53 - 1')
  if (!isPrefixedHex(to, 20)) throw invalid('to is not 20 bytes of hex')
  if (!isPrefixedHex(data) || data.length > 2 + 2 * MAX_DATA_BYTES) {
    throw invalid(`data is not hex of at most ${MAX_DATA_BYTES} bytes`)
  }
  assertAmount('value', value.value, 256n)
  assertAmount('gas', value.gas, 64n)
  const maxFee = assertAmount('maxFeePerGas', value.maxFeePerGas, 256n)
  const maxPriorityFee = assertAmount('maxPriorityFeePerGas', value.maxPriorityFeePerGas, 256n)
  // EIP-1559: such a transaction is invalid, so its signature could serve no purpose.
  if (maxPriorityFee > maxFee) throw invalid('maxPriorityFeePerGas is above maxFeePerGas')
}

/** Reads metadata into its one spelling, with hex in lower case: the form that is stored and goes into receipts. */
export function parseTxMetadata(value: unknown): TxMetadata {
  assertTxMetadata(value)
  return { ...value, to: value.to.toLowerCase() as Hex, data: value.data.toLowerCase() as Hex }
}

function assertAmount(name: string, value: unknown, bits: bigint): bigint {
  const amount = typeof value === 'string' && DECIMAL.test(value) ? BigInt(value) : -1n
  if (amount < 0n || amount >= 1n << bits) throw invalid(`${name} is not a decimal integer below 2^${bits}`)
  return amount
}

function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_tx_metadata', 'invalid transaction metadata', { details })
}
