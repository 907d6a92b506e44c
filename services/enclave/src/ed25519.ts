import { createPublicKey, type KeyObject, verify as verifySync } from 'node:crypto'
import { promisify } from 'node:util'

/** DER SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4), less the key. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const verify = promisify(verifySync)

/** Of 32 bytes, hex. */
export function importEd25519Key(key: string): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI, Buffer.from(key, 'hex')]), format: 'der', type: 'spki' })
}

/** On Node's thread pool: a check takes as long as everything else that the main thread does for a call. */
export function isEd25519Signature(key: KeyObject, message: Uint8Array, signatureHex: string): Promise<boolean> {
  return verify(undefined, message, key, Buffer.from(signatureHex, 'hex'))
}
