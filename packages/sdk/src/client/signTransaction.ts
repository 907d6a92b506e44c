import type { Hex, SignResult, TxMetadata, WalletInfo } from '@countersign/protocol'
import { keccak256, type Signature, serializeTransaction } from 'viem'
import { askForSignature } from './askForSignature.ts'
import type { Connection } from './connection.ts'
import { createError } from './errors.ts'
import { verifySignature } from './verifySignature.ts'

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

export type SignTransactionParameters = {
  wallet: Pick<WalletInfo, 'address'>
  /** Has the service refuse where the session is not that of the wallet: whatever is asked before, it may change until then. */
  isNamed?: boolean | undefined
  transaction: UnsignedTransaction
}

export type SignTransactionReturnType = { serializedTransaction: Hex; signed: SignResult }

/**
 * Has a transaction signed, and checks the answer before anyone can broadcast it: the signature must be the wallet's, over
 * exactly this transaction.
 */
export async function signTransaction(
  client: Connection,
  { wallet, isNamed, transaction }: SignTransactionParameters,
): Promise<SignTransactionReturnType> {
  const { maxFeePerGas, maxPriorityFeePerGas } = transaction
  // Not `>`: a cap that is no number must not let everything through.
  if (!(maxFeePerGas <= client.config.maxFeePerGas) || maxPriorityFeePerGas > maxFeePerGas) {
    const details = `${maxFeePerGas}, priority ${maxPriorityFeePerGas} wei`
    throw createError('fees_absurd', 'absurd fees', { details })
  }
  const unsigned = { ...transaction, type: 'eip1559' } as const
  const digest = keccak256(serialize(unsigned))
  const request = { digest, txMetadata: toTxMetadata(transaction), ...(isNamed && { wallet: wallet.address }) }
  const ask = () => client.api.signDigest(request)
  const { signature, slug } = await askForSignature(client, { wallet, ask, digest })
  const toRaw = (parts: Signature) => serializeTransaction(unsigned, parts)
  const toSigned = (parts: Signature) => ({ txHash: keccak256(toRaw(parts)), attestationSlug: slug })
  const parts = await verifySignature({ wallet, digest, signature, slug, toSigned })
  return { serializedTransaction: toRaw(parts), signed: toSigned(parts) }
}

/** With amounts in decimal, as JSON carries them. */
export function toTxMetadata(transaction: UnsignedTransaction): TxMetadata {
  const toText = (_name: string, member: unknown) => (typeof member === 'bigint' ? String(member) : member)
  return JSON.parse(JSON.stringify(transaction, toText))
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
