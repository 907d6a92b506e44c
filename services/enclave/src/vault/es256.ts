import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { VerifyEs256 } from '@countersign/policy'

/** DER SubjectPublicKeyInfo of a P-256 key (RFC 5480 §2), less the uncompressed point. */
const SPKI = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')

/** `VerifyEs256` by OpenSSL. */
export const verifyEs256: VerifyEs256 = (publicKey, signature, message) => {
  let key: KeyObject
  try {
    key = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' })
  } catch {
    // Not a point of the curve.
    return false
  }
  return verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
}
