import { ed25519 } from '@noble/curves/ed25519.js'

/**
 * Verifies an Ed25519 signature by RFC 8032 §5.1.7, with canonical encodings only. Rejects keys of small order, under which one signature
 * can fit many messages. Never throws, for any input.
 *
 * @example
 * verifyEd25519(coordinatorKey, release, toReleaseMessage({ leaf, collateralHash }))
 */
export function verifyEd25519(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false })
  } catch {
    // Wrong length, or not bytes.
    return false
  }
}

/** Whether a key is a canonically encoded point that is not of small order. */
export function isEd25519Key(publicKey: Uint8Array): boolean {
  try {
    // Strict by RFC 8032 §5.1.3. Throws if it is not a point of the curve.
    return !ed25519.Point.fromBytes(publicKey).isSmallOrder()
  } catch {
    return false
  }
}
