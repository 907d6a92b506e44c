import { type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'

const signOnPool = promisify(sign)

/** ML-DSA-65 (FIPS 204, pure, with an empty context) by this key. Takes milliseconds, on a thread of the pool. */
export function createMlDsa65Signer(privateKey: KeyObject): (message: Uint8Array) => Promise<Uint8Array> {
  return (message) => signOnPool(null, message, privateKey)
}

/** The 1,952 bytes of a key: what its SubjectPublicKeyInfo ends in. */
export function toMlDsa65Bytes(publicKey: KeyObject): Uint8Array<ArrayBuffer> {
  return new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-1_952))
}
