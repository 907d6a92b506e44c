import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isEd25519Key, toHex } from '@countersign/protocol/core'

/**
 * Verifies an Ed25519 signature. False for a key of small order or not in canonical encoding, and for bytes of another length. Can replace
 * the
 * protocol's `verifyEd25519`: the parameters are the same.
 */
export type IsEd25519Signature = (publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean

/** DER SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4), without the key. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const MAX_KEYS = 1024
const keys = new Map<string, KeyObject | undefined>()

/** OpenSSL itself accepts keys of small order. */
function importKey(publicKey: Uint8Array): KeyObject | undefined {
  const name = toHex(publicKey)
  if (keys.has(name)) return keys.get(name)
  const key = isEd25519Key(publicKey)
    ? createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
    : undefined
  // Evicts the oldest, so that third parties with many keys can't evict all keys in use at once.
  for (const oldest of keys.keys()) {
    if (keys.size < MAX_KEYS) break
    keys.delete(oldest)
  }
  keys.set(name, key)
  return key
}

export const isSignatureByOpenSsl: IsEd25519Signature = (publicKey, signature, message) => {
  const key = importKey(publicKey)
  return key !== undefined && verify(undefined, message, key, signature)
}
