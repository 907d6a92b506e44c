import { keccak_256 } from '@noble/hashes/sha3.js'
import { fromHex } from './hex.ts'
import { encodeRlp, type RlpItem, toScalar } from './rlp.ts'
import { type EcdsaSignature, parseSignature } from './signature.ts'
import { assertTxMetadata, type TxMetadata } from './txMetadata.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** EIP-2718 type byte of EIP-1559 transactions. */
const DYNAMIC_FEE = '02'

/** `0x02 ‖ RLP([chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value, data, []])`: EIP-1559. */
export function encodeUnsignedTransaction(metadata: TxMetadata): Bytes {
  assertTxMetadata(metadata)
  return encode(metadata)
}

/**
 * The digest to sign for a transaction.
 *
 * @example
 * if (!equalBytes(hashUnsignedTransaction(txMetadata), digest)) … // the digest belongs to another transaction
 */
export function hashUnsignedTransaction(metadata: TxMetadata): Bytes {
  return keccak_256(encodeUnsignedTransaction(metadata))
}

/** The raw transaction to broadcast: the unsigned fields, then yParity, r and s. `signature` is r ‖ s ‖ v, 65 bytes. */
export function encodeSignedTransaction(metadata: TxMetadata, signature: Uint8Array): Bytes {
  assertTxMetadata(metadata)
  return encode(metadata, toScalars(parseSignature(signature)))
}

/** The transaction hash. */
export function hashSignedTransaction(metadata: TxMetadata, signature: Uint8Array): Bytes {
  return keccak_256(encodeSignedTransaction(metadata, signature))
}

/**
 * Returns the same as `hashUnsignedTransaction`, or with a signature `hashSignedTransaction`. For hot paths: the metadata must already be
 * parsed.
 */
export function hashParsedTransaction(metadata: TxMetadata, signature?: EcdsaSignature): Bytes {
  return keccak_256(encode(metadata, signature && toScalars(signature)))
}

const toScalars = ({ yParity, r, s }: EcdsaSignature): string[] => [toScalar(yParity), toScalar(r), toScalar(s)]

function encode(metadata: TxMetadata, signature: readonly string[] = []): Bytes {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value, data } = metadata
  const fields: RlpItem[] = [
    toScalar(chainId),
    toScalar(nonce),
    toScalar(BigInt(maxPriorityFeePerGas)),
    toScalar(BigInt(maxFeePerGas)),
    toScalar(BigInt(gas)),
    to.slice(2).toLowerCase(),
    toScalar(BigInt(value)),
    data.slice(2).toLowerCase(),
    [],
    ...signature,
  ]
  return fromHex(DYNAMIC_FEE + encodeRlp(fields))
}
