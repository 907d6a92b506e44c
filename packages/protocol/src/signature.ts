import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { toField } from './fields.ts'
import { type Hex, toPrefixedHex } from './hex.ts'

type Bytes = Uint8Array<ArrayBuffer>

const { n } = secp256k1.Point.CURVE()

/** An ECDSA signature over secp256k1, with the parity of the y coordinate of its point R. */
export type EcdsaSignature = { r: bigint; s: bigint; yParity: 0 | 1 }

/**
 * Parses a signature: r (32 bytes) ‖ s (32) ‖ v (1), with v = 27 or 28, r and s in [1, n - 1], and s in the lower half (EIP-2). The upper
 * half would give a second signature for the same digest, and a second transaction hash.
 */
export function parseSignature(signature: Uint8Array): EcdsaSignature {
  if (!(signature instanceof Uint8Array) || signature.length !== 65) throw malformed('not 65 bytes')
  const v = signature[64]
  if (v !== 27 && v !== 28) throw malformed('v is neither 27 nor 28')
  const r = toNumber(signature.subarray(0, 32))
  const s = toNumber(signature.subarray(32, 64))
  if (r < 1n || r >= n) throw malformed('r is out of range')
  if (s < 1n || s > n >> 1n) throw malformed('s is out of range, or in the upper half')
  return { r, s, yParity: v === 28 ? 1 : 0 }
}

const toWord = (value: bigint) => value.toString(16).padStart(64, '0')
const [ONE, ORDER, HALF_ORDER] = [1n, n, n >> 1n].map(toWord) as [string, string, string]

/** Whether `parseSignature` accepts these 65 bytes of lower-case hex. Hex of equal length compares like the numbers. */
export function isSignatureHex(text: string): boolean {
  const [r, s, v] = [text.slice(0, 64), text.slice(64, 128), text.slice(128)]
  return (v === '1b' || v === '1c') && r >= ONE && r < ORDER && s >= ONE && s <= HALF_ORDER
}

/**
 * Recovers the key of a signature over a digest: 65 bytes, uncompressed. With v of 27 or 28, the x coordinate of R is r. Ethereum
 * transactions don't allow the other case (x = r + n, one in 2^127).
 */
export function recoverPublicKey(digest: Uint8Array, signature: Uint8Array): Bytes {
  toField('digest', digest, 32)
  const { r, s, yParity } = parseSignature(signature)
  try {
    return Uint8Array.from(new secp256k1.Signature(r, s, yParity).recoverPublicKey(digest).toBytes(false))
  } catch (cause) {
    throw malformed('no key matches it', cause)
  }
}

/** The address of a 65-byte uncompressed key, in lower case: the last 20 bytes of keccak256 over its two coordinates. */
export function toAddress(publicKey: Uint8Array): Hex {
  if (!isUncompressedPoint(publicKey)) {
    throw new ServiceError<ProtocolErrorCode>('public_key_malformed', 'expected an uncompressed point of secp256k1')
  }
  return toPrefixedHex(keccak_256(publicKey.subarray(1)).subarray(12))
}

function isUncompressedPoint(bytes: Uint8Array): boolean {
  return bytes instanceof Uint8Array && bytes.length === 65 && secp256k1.utils.isValidPublicKey(bytes, false)
}

/** A multiple of eight bytes. */
function toNumber(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let value = 0n
  for (let offset = 0; offset < bytes.length; offset += 8) value = (value << 64n) | view.getBigUint64(offset)
  return value
}

function malformed(details: string, cause?: unknown) {
  return new ServiceError<ProtocolErrorCode>('signature_malformed', 'malformed signature', { details, cause })
}
