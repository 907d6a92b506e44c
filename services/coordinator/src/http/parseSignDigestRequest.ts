import {
  type Hex,
  hashUnsignedTransaction,
  isPlainObject,
  isPrefixedHex,
  parseTxMetadata,
  ServiceError,
  type SignDigestRequest,
  type TxMetadata,
  toPrefixedHex,
} from '@countersign/protocol'
import { CoordinatorError, invalidRequest } from '../errors.ts'
import { assertChainAllowed, type ChainLimits } from './assertChainAllowed.ts'

/**
 * Reads the body of `POST /sign/digest`, and refuses a digest that is not that of the transaction: a user must never sign what
 * the metadata does not show. No key, session or sample is touched before this has passed.
 */
export function parseSignDigestRequest(body: unknown, limits: ChainLimits): SignDigestRequest {
  const { digest: asked, txMetadata: metadata } = assertMembers(body)
  if (!isPrefixedHex(asked, 32)) {
    throw new CoordinatorError('invalid_digest', 'invalid digest', { details: 'digest is not 0x and 64 hex digits' })
  }
  const txMetadata = readTxMetadata(metadata)
  const digest = asked.toLowerCase() as Hex
  if (toPrefixedHex(hashUnsignedTransaction(txMetadata)) !== digest) {
    throw new CoordinatorError('digest_mismatch', 'the digest is not that of the transaction')
  }
  assertChainAllowed(BigInt(txMetadata.chainId), limits)
  return { digest, txMetadata }
}

function assertMembers(body: unknown): { digest: unknown; txMetadata: unknown } {
  if (!isPlainObject(body)) throw invalidRequest('the body is not an object')
  const foreign = Object.keys(body).some((name) => name !== 'digest' && name !== 'txMetadata')
  if (foreign) throw invalidRequest('the body has other members than digest and txMetadata')
  return { digest: body.digest, txMetadata: body.txMetadata }
}

function readTxMetadata(value: unknown): TxMetadata {
  assertSupported(value)
  try {
    return parseTxMetadata(value)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const options = error.details === undefined ? {} : { details: error.details }
    throw new CoordinatorError('invalid_tx_metadata', 'invalid transaction metadata', options)
  }
}

/** Other kinds of transaction get a code of their own: no correction of the call would help. */
function assertSupported(value: unknown): void {
  // Whether it is plain is asked when it is read.
  if (typeof value !== 'object' || value === null) return
  const members = value as Record<string, unknown>
  const { type, accessList, to } = members
  const isTyped = typeof type === 'string' || typeof type === 'number'
  if (isTyped && type !== 'eip1559' && type !== 2 && type !== '0x2') throw unsupported('type is not that of EIP-1559')
  for (const name of ['gasPrice', 'blobVersionedHashes', 'authorizationList']) {
    if ((members[name] ?? null) !== null) throw unsupported(`${name} is of another type of transaction`)
  }
  if (Array.isArray(accessList) && accessList.length > 0) throw unsupported('accessList is not empty')
  if (to === null) throw unsupported('to is null')
}

function unsupported(details: string) {
  return new CoordinatorError('unsupported_transaction', 'unsupported transaction', { details })
}
