import { createRequire } from 'node:module'

type Sodium = {
  crypto_sign_SECRETKEYBYTES: number
  crypto_sign_BYTES: number
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

// Without declarations of its own. libsodium is more than twice as fast as OpenSSL at both: decision 8.
const sodium: Sodium = createRequire(import.meta.url)('sodium-native')

/** Ed25519 by the key of a 32-byte seed (RFC 8032). */
export function createEd25519Signer(seed: Uint8Array): (message: Uint8Array) => Uint8Array {
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_seed_keypair(Buffer.alloc(32), secretKey, seed)
  return (message) => {
    const signature = new Uint8Array(sodium.crypto_sign_BYTES)
    sodium.crypto_sign_detached(signature, message, secretKey)
    return signature
  }
}

/** Whether an Ed25519 signature (64 bytes) holds under a key (32 bytes). */
export function isEd25519Signature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return sodium.crypto_sign_verify_detached(signature, message, publicKey)
}
