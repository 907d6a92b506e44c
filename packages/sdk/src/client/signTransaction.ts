import type { Hex, ServiceError, SignResult, TxMetadata, WalletInfo } from '@countersign/protocol'
import { keccak256, parseSignature, recoverAddress, type Signature, serializeTransaction } from 'viem'
import type { SigningConnection } from './connection.ts'
import { createError } from './errors.ts'
import { requestSignature } from './verifyWallet.ts'

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

type SignTransactionParameters = {
  wallet: Pick<WalletInfo, 'address'>
  /** Names the wallet in the request. The service then rejects the request if another user has signed in. */
  isNamed?: boolean | undefined
  transaction: UnsignedTransaction
}

export type SignTransactionReturnType = { serializedTransaction: Hex; signed: SignResult }

/**
 * Signs a transaction. Throws unless the signature is the wallet's over exactly this transaction.
 */
export async function signTransaction(
  client: SigningConnection,
  { wallet, isNamed, transaction }: SignTransactionParameters,
): Promise<SignTransactionReturnType> {
  const { maxFeePerGas, maxPriorityFeePerGas } = transaction
  // Not `>`, which would accept every fee if the cap is not a number.
  if (!(maxFeePerGas <= client.config.maxFeePerGas) || maxPriorityFeePerGas > maxFeePerGas) {
    const details = `${maxFeePerGas}, priority ${maxPriorityFeePerGas} wei`
    throw createError('fees_absurd', 'absurd fees', { details })
  }
  const unsigned = { ...transaction, type: 'eip1559' } as const
  const digest = keccak256(serialize(unsigned))
  const request = {
    digest,
    txMetadata: toTxMetadata(transaction),
    ...((isNamed || client.config.session) && { wallet: wallet.address }),
  }
  const ask = () => client.api.signDigest(request)
  const { signature, slug } = await requestSignature(client, { wallet, ask, digest })
  const toRaw = (parts: Signature) => serializeTransaction(unsigned, parts)
  const toSigned = (parts: Signature) => ({ txHash: keccak256(toRaw(parts)), attestationSlug: slug })
  const parts = await verifySignature({ wallet, digest, signature, slug, toSigned })
  return { serializedTransaction: toRaw(parts), signed: toSigned(parts) }
}

/** With amounts in decimal. */
export function toTxMetadata(transaction: UnsignedTransaction): TxMetadata {
  const toText = (_name: string, member: unknown) => (typeof member === 'bigint' ? String(member) : member)
  return JSON.parse(JSON.stringify(transaction, toText))
}

function serialize(unsigned: Parameters<typeof serializeTransaction>[0]): Hex {
  try {
    return serializeTransaction(unsigned)
  } catch (cause) {
    const details = (cause as Error).message
    throw createError('invalid_request', 'the transaction cannot be built', { details, cause })
  }
}

/** EIP-2: half the order of secp256k1. Nodes reject a higher `s`. In viem's format, where the strings compare as the numbers do. */
const MAX_S = '0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0'

export type VerifySignatureParameters = {
  wallet: Pick<WalletInfo, 'address'>
  digest: Hex
  signature: Hex
  slug: string
  /** The transaction that an error reports as signed. */
  toSigned?: ((parts: Signature) => SignResult) | undefined
}

/** Throws `signature_mismatch` unless the signature is the wallet's over this digest. */
export async function verifySignature(parameters: VerifySignatureParameters): Promise<Signature> {
  const { wallet, digest, signature, slug, toSigned } = parameters
  let parts: Signature
  let signer: Hex
  try {
    parts = parseSignature(signature)
    signer = await recoverAddress({ hash: digest, signature })
  } catch (cause) {
    throw mismatch(`it recovers to no address; proof ${slug}`, { cause })
  }
  const signed = toSigned?.(parts)
  if (signer.toLowerCase() !== wallet.address.toLowerCase()) {
    throw mismatch(`it is of ${signer}, not ${wallet.address}; proof ${slug}`, { signed })
  }
  if (parts.s > MAX_S) throw mismatch('its s is high', { signed })
  return parts
}

export function mismatch(
  details: string,
  options?: { cause?: unknown; signed?: SignResult | undefined },
): ServiceError {
  return createError('signature_mismatch', 'wrong signature', {
    details,
    ...options,
  })
}
