import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { concatBytes } from '@countersign/protocol/core'

/** An X25519 key pair, with the 32 bytes of the public key. */
export type X25519Pair = { privateKey: KeyObject; publicKey: Uint8Array<ArrayBuffer> }

/** The DER prefixes of X25519 keys (RFC 8410 §4 and §7), without the 32 bytes of the key. */
const SPKI = Buffer.from('302a300506032b656e032100', 'hex')
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex')

export function createX25519Pair(): X25519Pair {
  return toPair(generateKeyPairSync('x25519').privateKey)
}

/** From the 32 bytes of a private key. */
export function importX25519Pair(bytes: Uint8Array): X25519Pair {
  assertLength(bytes)
  const der = concatBytes(PKCS8, bytes)
  try {
    return toPair(createPrivateKey({ key: Buffer.from(der.buffer), format: 'der', type: 'pkcs8' }))
  } finally {
    der.fill(0)
  }
}

/** The 32 bytes of a private key. */
export function exportX25519(privateKey: KeyObject): Uint8Array<ArrayBuffer> {
  const der = privateKey.export({ format: 'der', type: 'pkcs8' })
  const bytes = new Uint8Array(der.subarray(PKCS8.length))
  der.fill(0)
  return bytes
}

/** The shared secret of two keys. Rejects a key of small order, which gives everyone the same secret (RFC 7748 §6.1). */
export function agree(privateKey: KeyObject, publicKey: Uint8Array): Buffer {
  const shared = diffieHellman({ privateKey, publicKey: importPublic(publicKey) })
  if (shared.every((byte) => byte === 0)) throw new Error('a key of small order')
  return shared
}

/** Whether bytes are a usable public key. */
export function isX25519Key(bytes: Uint8Array): boolean {
  try {
    agree(createX25519Pair().privateKey, bytes).fill(0)
    return true
  } catch {
    return false
  }
}

function importPublic(bytes: Uint8Array): KeyObject {
  assertLength(bytes)
  return createPublicKey({ key: Buffer.from(concatBytes(SPKI, bytes).buffer), format: 'der', type: 'spki' })
}

function toPair(privateKey: KeyObject): X25519Pair {
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return { privateKey, publicKey: new Uint8Array(spki.subarray(SPKI.length)) }
}

function assertLength(bytes: Uint8Array) {
  if (bytes.length !== 32) throw new Error('an X25519 key has 32 bytes')
}
