import { hash } from 'node:crypto'
import {
  assertTxMetadata,
  equalBytes,
  hashSignedTransaction,
  hashUnsignedTransaction,
  ServiceError,
  type SignItem,
  type SignItemError,
  type Statement,
  tags,
  toHex,
  toStatementText,
} from '@countersign/protocol'
import { checkGrant } from '../grant/grant.ts'
import type { Keyring } from '../keys/deriveKey.ts'
import { signRecoverable } from './secp256k1.ts'

/** A statement and its leaf, not yet covered by a quote. Nothing of it may leave the enclave before that. */
export type SignedItem = { statement: Statement; leaf: Uint8Array<ArrayBuffer> }

/**
 * Checks one item and signs it. A bare hash is never signed: the transaction is rebuilt from its fields, and
 * must hash to the digest that the caller named.
 */
export function signItem(
  { keyring, now }: { keyring: Keyring; now: number },
  item: SignItem,
  coordinatorKey: string,
): SignedItem | SignItemError {
  const grant = checkGrant(keyring.grantKey, { grant: item.grant, sid: item.sid, now })
  if ('fault' in grant) return { error: grant.fault }
  const { keyId, address, publicKey } = keyring.describe(grant.owner)
  if (grant.keyId !== keyId || item.keyId !== keyId || grant.address !== address)
    return { error: 'key_binding_mismatch' }

  const digest = hashTransaction(item)
  if ('error' in digest) return digest
  const signature = keyring.withPrivateKey(grant.owner, (privateKey) => signDigest(digest.bytes, privateKey))
  const statement: Statement = {
    address,
    chainId: item.txMetadata.chainId,
    coordinatorKey,
    digest: item.digest,
    entropyHash: hash('sha256', Buffer.from(item.witness.valueHex, 'hex'), 'hex'),
    keyId,
    publicKey,
    signature: `0x${toHex(signature)}`,
    signedAt: new Date(now).toISOString(),
    txHash: `0x${toHex(hashSignedTransaction(item.txMetadata, signature))}`,
    type: tags.signing,
  }
  return { statement, leaf: toLeaf(statement) }
}

/** The protocol's `hashLeaf` for a statement made just above, without its checks and with the faster SHA-256. */
function toLeaf(statement: Statement): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hash('sha256', `\0${toStatementText(statement)}`, 'buffer'))
}

/** Rebuilds the unsigned EIP-1559 transaction; any other type has fields that do not exist here. */
function hashTransaction({ txMetadata, digest }: SignItem): { bytes: Uint8Array } | SignItemError {
  try {
    assertTxMetadata(txMetadata)
  } catch (error) {
    if (error instanceof ServiceError) return { error: 'invalid_tx_metadata' }
    throw error
  }
  const bytes = hashUnsignedTransaction(txMetadata)
  return equalBytes(bytes, Buffer.from(digest.slice(2), 'hex')) ? { bytes } : { error: 'digest_mismatch' }
}

/** RFC 6979, low s, r ‖ s ‖ v with v 27 or 28. libsecp256k1 gives a recovery id above 1 once in 2^127. */
function signDigest(digest: Uint8Array, privateKey: Uint8Array): Uint8Array<ArrayBuffer> {
  const { signature, recoveryId } = signRecoverable(digest, privateKey)
  if (recoveryId > 1) throw new Error('a signature that no transaction can carry')
  const bytes = new Uint8Array(65)
  bytes.set(signature)
  bytes[64] = 27 + recoveryId
  return bytes
}
