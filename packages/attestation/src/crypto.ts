import { ServiceError } from '@countersign/protocol/core'
import { QuoteError } from './errors.ts'

type Bytes = Uint8Array<ArrayBuffer>
export type Curve = 'P-256' | 'P-384'

const HASH_OF_CURVE = { 'P-256': 'SHA-256', 'P-384': 'SHA-384' } as const

/** Imports an uncompressed point. Rejects points that are not on the curve. */
export function importEcKey(curve: Curve, point: Bytes): Promise<CryptoKey> {
  return importKey('raw', point, { name: 'ECDSA', namedCurve: curve })
}

/** Imports an RSA SubjectPublicKeyInfo for RSASSA-PSS with SHA-384. */
export function importRsaKey(spki: Bytes): Promise<CryptoKey> {
  return importKey('spki', spki, { name: 'RSA-PSS', hash: 'SHA-384' })
}

async function importKey(format: 'raw' | 'spki', bytes: Bytes, algorithm: EcKeyImportParams | RsaHashedImportParams) {
  const webCrypto = subtle()
  try {
    return await webCrypto.importKey(format, bytes, algorithm, false, ['verify'])
  } catch (cause) {
    throw new QuoteError('certificate_malformed', 'invalid public key', { cause })
  }
}

/** ECDSA with the curve's hash over `data`; `signature` is r ‖ s. Accepts high s, which both vendors issue. */
export function verifyEcdsa(key: CryptoKey, curve: Curve, signature: Bytes, data: Bytes): Promise<boolean> {
  return subtle().verify({ name: 'ECDSA', hash: HASH_OF_CURVE[curve] }, key, signature, data)
}

/** RSASSA-PSS with SHA-384 and a 48-byte salt, the only RSA signature in AMD's chains. */
export async function verifyRsaPss(key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean> {
  const webCrypto = subtle()
  try {
    return await webCrypto.verify({ name: 'RSA-PSS', saltLength: 48 }, key, signature, data)
  } catch {
    // Node throws for a key that is too short for this salt. Anyone can put such a key into a certificate.
    return false
  }
}

export async function digest(hash: 'SHA-256' | 'SHA-384', data: Bytes): Promise<Bytes> {
  return new Uint8Array(await subtle().digest(hash, data))
}

function subtle(): SubtleCrypto {
  const webCrypto = globalThis.crypto?.subtle
  if (webCrypto === undefined) {
    throw new ServiceError('webcrypto_unavailable', 'WebCrypto is not available', {
      details: 'a browser offers it on https:// and localhost pages only',
    })
  }
  return webCrypto
}

/** Awaits parallel checks and throws the first failure in their order, so that the same evidence always gets the same error. */
export async function inOrder<const Checks extends readonly Promise<unknown>[]>(
  checks: Checks,
): Promise<{ -readonly [Index in keyof Checks]: Awaited<Checks[Index]> }> {
  const settled = await Promise.allSettled(checks)
  const values = settled.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return values as { -readonly [Index in keyof Checks]: Awaited<Checks[Index]> }
}
