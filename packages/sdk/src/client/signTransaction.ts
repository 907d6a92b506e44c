import { type Hex, ServiceError, type SignResult, type TxMetadata, type WalletInfo } from '@countersign/protocol'
import { keccak256, parseSignature, recoverAddress, serializeTransaction } from 'viem'
import type { Connection } from './connection.ts'
import { createError } from './errors.ts'

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

export type SignTransactionReturnType = { serializedTransaction: Hex; signed: SignResult }

/** EIP-2: half the order of secp256k1. Nodes refuse a signature above it. */
const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/**
 * Has a transaction signed, and checks the answer before anyone can broadcast it: the signature must be the wallet's, over
 * exactly this transaction.
 */
export async function signTransaction(
  client: Connection,
  { wallet, transaction }: SignTransactionParameters,
): Promise<SignTransactionReturnType> {
  const { value, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
  // Not `>`: a cap that is no number must not let everything through.
  if (!(maxFeePerGas <= client.config.maxFeePerGas) || maxPriorityFeePerGas > maxFeePerGas) {
    const details = `${maxFeePerGas}, priority ${maxPriorityFeePerGas} wei`
    throw createError('fees_absurd', 'absurd fees', { details })
  }
  const unsigned = { ...transaction, type: 'eip1559' } as const
  const digest = keccak256(serialize(unsigned))
  const txMetadata: TxMetadata = {
    ...transaction,
    value: String(value),
    gas: String(gas),
    maxFeePerGas: String(maxFeePerGas),
    maxPriorityFeePerGas: String(maxPriorityFeePerGas),
  }
  const { signature, slug } = await askForSignature(client, { digest, txMetadata })
  const { signer, parts } = await recover({ digest, signature, slug })
  const serializedTransaction = serializeTransaction(unsigned, parts)
  const signed = { txHash: keccak256(serializedTransaction), attestationSlug: slug }
  if (signer.toLowerCase() !== wallet.address.toLowerCase()) {
    throw mismatch(`it is of ${signer}, not ${wallet.address}`, { signed })
  }
  if (BigInt(parts.s) > MAX_S) throw mismatch('its s is high', { signed })
  return { serializedTransaction, signed }
}

/**
 * Asks again, once, where the answer was lost: the same digest gets the same signature and the same slug (one proof for each).
 * A transaction that is built again would be a second one, with other fees.
 */
async function askForSignature(client: Connection, request: { digest: Hex; txMetadata: TxMetadata }) {
  try {
    return await client.api.signDigest(request)
  } catch (lost) {
    if (!(lost instanceof ServiceError) || !isLost(lost)) throw lost
    return client.api.signDigest(request).catch((cause: unknown) => {
      const { code, message, status } = lost
      const details = `it may have been signed, digest ${request.digest}: look in listTransactions first`
      throw new ServiceError(code, message, { details, cause, status, retryable: false })
    })
  }
}

/** No answer, or something on the way put its own in the place of it. A refusal is an answer. */
function isLost({ code, status = 0 }: ServiceError): boolean {
  return status === 0 || (code === 'response_invalid' && (status < 400 || status >= 500))
}

function serialize(unsigned: Parameters<typeof serializeTransaction>[0]): Hex {
  try {
    return serializeTransaction(unsigned)
  } catch (cause) {
    // viem throws nothing but errors.
    const details = (cause as Error).message
    throw createError('invalid_request', 'the transaction cannot be built', { details, cause })
  }
}

async function recover({ digest, signature, slug }: { digest: Hex; signature: Hex; slug: string }) {
  try {
    return { parts: parseSignature(signature), signer: await recoverAddress({ hash: digest, signature }) }
  } catch (cause) {
    throw mismatch(`it recovers to no address; its proof is ${slug}`, { cause })
  }
}

function mismatch(details: string, options: { cause?: unknown; signed?: SignResult }) {
  return createError('signature_mismatch', 'the signature is not of this wallet over this transaction', {
    details,
    ...options,
  })
}
