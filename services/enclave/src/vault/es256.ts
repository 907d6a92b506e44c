import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { VerifyEs256 } from '@countersign/policy'

/** DER SubjectPublicKeyInfo of a P-256 key (RFC 5480 §2), less the uncompressed point. */
const SPKI = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')

/** How many keys are remembered: to import one takes as long as to verify with it. */
const MAX_KEYS = 10_000

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
    return key !== undefined && verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
  }
}

/** Undefined for what is not a point of the curve. */
function importKey(publicKey: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}
