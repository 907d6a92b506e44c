import { createError } from './errors.ts'

/** What transactions of other types than EIP-1559 carry. */
const FOREIGN = ['gasPrice', 'maxFeePerBlobGas', 'blobs', 'blobVersionedHashes', 'sidecars', 'authorizationList']

/** The failure of a transaction that carries what belongs to another type; undefined if it carries nothing of the kind. */
export function findForeign(transaction: object) {
  const [name] = Object.entries(transaction).find(([key, value]) => FOREIGN.includes(key) && value != null) ?? []
  return name && unsupportedTransaction(`${name} belongs to another type of transaction than EIP-1559`)
}

export function unsupportedTransaction(reason: string) {
  return createError('unsupported_transaction', `the service does not sign this transaction: ${reason}`)
}
