import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { VerifyEs256 } from '@countersign/policy/core'

/** DER SubjectPublicKeyInfo of a P-256 key (RFC 5480 §2) without the uncompressed point. */
const SPKI = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')

/** How many keys to cache: importing one takes as long as verifying with it. */
const MAX_KEYS = 10_000

/** r ‖ s. */
const SIGNATURE_BYTES = 64

/** `VerifyEs256` by OpenSSL. */
export function createVerifyEs256(): VerifyEs256 {
  const keys = new Map<string, KeyObject>()

  function findKey(publicKey: Uint8Array): KeyObject | undefined {
    const name = Buffer.from(publicKey).toString('latin1')
    const known = keys.get(name)
    if (known !== undefined) return known
    const key = importKey(publicKey)
    if (key === undefined) return undefined
    if (keys.size >= MAX_KEYS) keys.clear()
    keys.set(name, key)
    return key
  }

  return (publicKey, signature, message) => {
    const key = findKey(publicKey)
    // DER, so that the key object can be passed directly; passing options in an object is five times slower.
    return key !== undefined && signature.length === SIGNATURE_BYTES && verify('sha256', message, key, toDer(signature))
  }
}

/** SEQUENCE { r INTEGER, s INTEGER } (RFC 3279 §2.2.3). */
function toDer(signature: Uint8Array): Buffer {
  const integers = [toInteger(signature.subarray(0, 32)), toInteger(signature.subarray(32))]
  const content = Buffer.concat(integers)
  return Buffer.concat([Buffer.of(0x30, content.length), content])
}

/** Minimal length, with a zero before a value that would read as negative: X.690 §8.3. */
function toInteger(coordinate: Uint8Array): Buffer {
  const start = coordinate.findIndex((byte) => byte !== 0)
  const digits = start < 0 ? Buffer.of(0) : coordinate.subarray(start)
  const sign = (digits[0] ?? 0) >= 0x80 ? [0] : []
  return Buffer.concat([Buffer.of(0x02, sign.length + digits.length, ...sign), digits])
}

/** An uncompressed point. OpenSSL also reads the hybrid form, which would give one key two names. */
export const isP256Key = (publicKey: Uint8Array) => publicKey[0] === 4 && importKey(publicKey) !== undefined

/** Returns undefined for a point that is not on the curve. */
function importKey(publicKey: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}
