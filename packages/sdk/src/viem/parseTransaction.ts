import { type SerializeTransactionFn, serializeTransaction, type TransactionSerializable } from 'viem'
import { createError, findUnsupportedField, unsupportedTransaction } from '../client/errors.ts'
import type { UnsignedTransaction } from '../client/signTransaction.ts'

type ParseTransactionOptions = {
  /** The client's. */
  chainId: number | undefined
  /** The chain's, which viem passes. */
  serializer: unknown
}

/** A transaction that viem asks an account to sign. Throws `unsupported_transaction` for another type than EIP-1559 or another chain. */
export function parseTransaction(
  transaction: TransactionSerializable,
  { chainId, serializer }: ParseTransactionOptions,
): UnsignedTransaction {
  const { type, accessList, to, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, value = 0n, data = '0x' } = transaction
  if (type !== undefined && type !== 'eip1559') throw unsupportedTransaction(`its type is ${type}, not eip1559`)
  const unsupported = findUnsupportedField(transaction)
  if (unsupported) throw unsupported
  if (accessList !== undefined && accessList.length > 0) throw unsupportedTransaction('it has an access list')
  if (to === undefined || to === null) throw unsupportedTransaction('it creates a contract: there is no recipient')
  if (chainId === undefined || transaction.chainId !== chainId) {
    throw unsupportedTransaction(`its chain is ${transaction.chainId ?? 'not named'}, expected ${chainId ?? 'one'}`)
  }
  // A local account would sign zeros. Here, the useless signature would become public.
  if (nonce === undefined || gas === undefined || maxFeePerGas === undefined || maxPriorityFeePerGas === undefined) {
    throw createError('invalid_request', 'the transaction is not complete: prepare it before it is signed', {
      details: 'nonce, gas, maxFeePerGas and maxPriorityFeePerGas are needed',
    })
  }
  const unsigned = { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }
  assertPlainSerializer(unsigned, serializer as SerializeTransactionFn<TransactionSerializable> | undefined)
  return unsigned
}

/** Accepts a chain's custom serializer only if it serializes EIP-1559 transactions as usual. */
function assertPlainSerializer(
  unsigned: UnsignedTransaction,
  serializer: SerializeTransactionFn<TransactionSerializable> | undefined,
): void {
  if (serializer === undefined || serializer === serializeTransaction) return
  const transaction = { ...unsigned, type: 'eip1559' } as const
  if (serializer(transaction) !== serializeTransaction(transaction)) {
    throw unsupportedTransaction('the chain serializes it differently')
  }
}
