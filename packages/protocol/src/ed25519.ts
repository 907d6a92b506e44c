import { ed25519 } from '@noble/curves/ed25519.js'

/**
 * Whether an Ed25519 signature holds, by RFC 8032 §5.1.7: points and scalar in their one canonical encoding, and no key of
 * small order, under which one signature would fit many messages. Bytes of any kind and length give an answer, never an error.
 *
 * @example
 * verifyEd25519(coordinatorKey, release, toReleaseMessage({ leaf, collateralHash }))
 */
export function verifyEd25519(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false })
  } catch {
    // Of another length, or no bytes at all.
    return false
  }
}

/** Whether a key is a point in its one canonical encoding, and not of small order. */
export function isEd25519Key(publicKey: Uint8Array): boolean {
  try {
    // Strict by RFC 8032 §5.1.3; throws for what is no point of the curve.
    return !ed25519.Point.fromBytes(publicKey).isSmallOrder()
  } catch {
    return false
  }
}
