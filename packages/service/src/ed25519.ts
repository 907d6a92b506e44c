import { createRequire } from 'node:module'
import { type IsEd25519Signature, isSignatureByOpenSsl } from './ed25519ByOpenSsl.ts'

type Sodium = {
  crypto_sign_SECRETKEYBYTES: number
  crypto_sign_PUBLICKEYBYTES: number
  crypto_sign_BYTES: number
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

// The package has no type declarations.
const sodium: Sodium = createRequire(import.meta.url)('sodium-native')

type Ed25519Signer = { publicKey: Uint8Array; sign(message: Uint8Array): Uint8Array }

/** Signs with the Ed25519 key of a 32-byte seed (RFC 8032). */
export function createEd25519Signer(seed: Uint8Array): Ed25519Signer {
  const publicKey = new Uint8Array(sodium.crypto_sign_PUBLICKEYBYTES)
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, seed)
  return {
    publicKey,
    sign(message) {
      const signature = new Uint8Array(sodium.crypto_sign_BYTES)
      sodium.crypto_sign_detached(signature, message, secretKey)
      return signature
    },
  }
}

export const isSignatureBySodium: IsEd25519Signature = (publicKey, signature, message) =>
  publicKey.length === sodium.crypto_sign_PUBLICKEYBYTES &&
  signature.length === sodium.crypto_sign_BYTES &&
  sodium.crypto_sign_verify_detached(signature, message, publicKey)

/** The faster implementation: decision 8. */
export const isEd25519Signature = process.arch === 'arm64' ? isSignatureByOpenSsl : isSignatureBySodium
