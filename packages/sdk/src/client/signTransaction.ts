import type { Hex, TxMetadata, WalletInfo } from '@countersign/protocol'
import { keccak256, parseGwei, parseSignature, recoverAddress, serializeTransaction } from 'viem'
import { createError } from './errors.ts'
import type { ServiceClient } from './ServiceClient.ts'

/** The fields of an unsigned EIP-1559 transaction; its access list is empty. */
export type UnsignedTransaction = {
  chainId: number
  nonce: number
  to: Hex
  value: bigint
  data: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

export type SignTransactionParameters = { wallet: WalletInfo; transaction: UnsignedTransaction }

export type SignTransactionReturnType = { serializedTransaction: Hex; txHash: Hex; slug: string; signature: Hex }

/** No test network comes near it, and a plain transfer at this fee costs 0.21 ether. */
const MAX_FEE_PER_GAS = parseGwei('10000')

/** EIP-2: half the order of secp256k1. Nodes refuse a signature above it. */
const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/**
 * Has a transaction signed, and checks the answer before anyone can broadcast it: the signature must be the wallet's, over
 * exactly this transaction.
 */
export async function signTransaction(
  client: ServiceClient,
  { wallet, transaction }: SignTransactionParameters,
): Promise<SignTransactionReturnType> {
  const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
  if (maxFeePerGas > MAX_FEE_PER_GAS || maxPriorityFeePerGas > maxFeePerGas) {
    const details = `maxFeePerGas ${maxFeePerGas} wei, maxPriorityFeePerGas ${maxPriorityFeePerGas} wei`
    throw createError('fees_absurd', 'the fees are beyond any sense', { details })
  }
  const unsigned = {
    type: 'eip1559',
    chainId,
    nonce,
    to,
    value,
    data,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
  } as const
  const digest = keccak256(serialize(unsigned))
  const txMetadata: TxMetadata = {
    chainId,
    nonce,
    to,
    value: String(value),
    data,
    gas: String(gas),
    maxFeePerGas: String(maxFeePerGas),
    maxPriorityFeePerGas: String(maxPriorityFeePerGas),
  }
  const { signature, slug } = await client.api.signDigest({ digest, txMetadata })
  const parts = await verifySignature({ digest, signature, address: wallet.address })
  const serializedTransaction = serializeTransaction(unsigned, parts)
  return { serializedTransaction, txHash: keccak256(serializedTransaction), slug, signature }
}

function serialize(unsigned: Parameters<typeof serializeTransaction>[0]): Hex {
  try {
    return serializeTransaction(unsigned)
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : undefined
    throw createError('invalid_request', 'the transaction cannot be built', { details, cause })
  }
}

/** The signature's parts, if it recovers to the address and a node would take it. */
async function verifySignature({ digest, signature, address }: { digest: Hex; signature: Hex; address: Hex }) {
  let signer: string
  let parts: ReturnType<typeof parseSignature>
  try {
    parts = parseSignature(signature)
    signer = await recoverAddress({ hash: digest, signature })
  } catch (cause) {
    throw mismatch('it recovers to no address', cause)
  }
  if (signer.toLowerCase() !== address.toLowerCase()) throw mismatch(`it is of ${signer}, not of ${address}`)
  if (BigInt(parts.s) > MAX_S) throw mismatch('its s is not the low one')
  return parts
}

function mismatch(details: string, cause?: unknown) {
  return createError('signature_mismatch', 'the signature is not of this wallet over this transaction', {
    details,
    cause,
  })
}
