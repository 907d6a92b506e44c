import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { createRequire } from 'node:module'
import { isEd25519Key, toHex } from '@countersign/protocol'

type Sodium = {
  crypto_sign_SECRETKEYBYTES: number
  crypto_sign_PUBLICKEYBYTES: number
  crypto_sign_BYTES: number
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

// Without declarations of its own.
const sodium: Sodium = createRequire(import.meta.url)('sodium-native')

/** Ed25519 by the key of a 32-byte seed (RFC 8032). */
export function createEd25519Signer(seed: Uint8Array): (message: Uint8Array) => Uint8Array {
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_seed_keypair(Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES), secretKey, seed)
  return (message) => {
    const signature = new Uint8Array(sodium.crypto_sign_BYTES)
    sodium.crypto_sign_detached(signature, message, secretKey)
    return signature
  }
}

/**
 * Whether an Ed25519 signature holds under a key. False for a key of small order or in another than its canonical encoding, and for
 * bytes of another length.
 */
export type IsEd25519Signature = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean

export const isSignatureBySodium: IsEd25519Signature = (publicKey, message, signature) =>
  publicKey.length === sodium.crypto_sign_PUBLICKEYBYTES &&
  signature.length === sodium.crypto_sign_BYTES &&
  sodium.crypto_sign_verify_detached(signature, message, publicKey)

/** DER SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4), less the key. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const MAX_KEYS = 1024
const keys = new Map<string, KeyObject | undefined>()

/** OpenSSL itself would take a key of small order. */
function importKey(publicKey: Uint8Array): KeyObject | undefined {
  const name = toHex(publicKey)
  if (keys.has(name)) return keys.get(name)
  const key = isEd25519Key(publicKey)
    ? createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
    : undefined
  // The oldest goes: strangers who send many keys must not push out all that are in use at one time.
  for (const oldest of keys.keys()) {
    if (keys.size < MAX_KEYS) break
    keys.delete(oldest)
  }
  keys.set(name, key)
  return key
}

export const isSignatureByOpenSsl: IsEd25519Signature = (publicKey, message, signature) => {
  const key = importKey(publicKey)
  return key !== undefined && verify(undefined, message, key, signature)
}

/** The faster of the two, as measured: decision 8. */
export const isEd25519Signature = process.arch === 'arm64' ? isSignatureByOpenSsl : isSignatureBySodium
