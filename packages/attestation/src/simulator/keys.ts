import { ServiceError } from '@countersign/protocol/core'
import { p256, p384 } from '@noble/curves/nist.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256, sha384 } from '@noble/hashes/sha2.js'
import type { IssuerKey } from '../x509/encodeCertificate.ts'
import { bitString, objectIdentifier, sequence } from '../x509/encodeDer.ts'

/** An ECDSA key. All signatures are deterministic (RFC 6979). */
export type EcKey = IssuerKey & {
  /** x ‖ y, as quotes carry it. */
  point: Uint8Array
  /** r ‖ s, big-endian and of fixed length. */
  signRaw: (message: Uint8Array) => Uint8Array
}

/** Derives every secret and identifier of the simulator: HKDF-SHA-256 of the seed with a label. */
export function derive(seed: string, label: string, length: number): Uint8Array {
  const encoder = new TextEncoder()
  return hkdf(sha256, encoder.encode(seed), undefined, encoder.encode(label), length)
}

/** `id-ecPublicKey` with `prime256v1`; ecdsa-with-SHA256 (RFC 5480, RFC 5758). */
export function createP256Key(seed: string, label: string): EcKey {
  const secret = p256.utils.randomSecretKey(derive(seed, label, 48))
  const point = p256.getPublicKey(secret, false)
  return {
    point: point.subarray(1),
    publicKey: ecPublicKey('1.2.840.10045.3.1.7', point),
    algorithm: sequence(objectIdentifier('1.2.840.10045.4.3.2')),
    sign: (message) => p256.sign(sha256(message), secret, { prehash: false, lowS: false, format: 'der' }),
    signRaw: (message) => p256.sign(sha256(message), secret, { prehash: false, lowS: false }),
  }
}

/** `id-ecPublicKey` with `secp384r1`; ecdsa-with-SHA384. */
export function createP384Key(seed: string, label: string): EcKey {
  const secret = p384.utils.randomSecretKey(derive(seed, label, 72))
  const point = p384.getPublicKey(secret, false)
  return {
    point: point.subarray(1),
    publicKey: ecPublicKey('1.3.132.0.34', point),
    algorithm: sequence(objectIdentifier('1.2.840.10045.4.3.3')),
    sign: (message) => p384.sign(sha384(message), secret, { prehash: false, lowS: false, format: 'der' }),
    signRaw: (message) => p384.sign(sha384(message), secret, { prehash: false, lowS: false }),
  }
}

function ecPublicKey(curve: string, point: Uint8Array): Uint8Array {
  return sequence(sequence(objectIdentifier('1.2.840.10045.2.1'), objectIdentifier(curve)), bitString(point))
}

/** A function that creates each value once and keeps it. */
export type Memo = <Value>(key: string, make: () => Value) => Value

export function createMemo(): Memo {
  const values = new Map<string, unknown>()
  return <Value>(key: string, make: () => Value): Value => {
    if (!values.has(key)) values.set(key, make())
    return values.get(key) as Value
  }
}

/** PUBLIC. Anyone can derive every key from it, so evidence under its roots proves nothing. For development only. */
export const developmentSeed = 'countersign simulated silicon: this seed is PUBLIC and for DEVELOPMENT ONLY'

/** Also public. Its roots differ, for tests of evidence under untrusted roots. */
export const strangerSeed = 'a stranger: this seed is PUBLIC and for TESTS ONLY'

/** Checks the length that TDX and SEV-SNP share. */
export function toReportData(reportData: Uint8Array): Uint8Array {
  if (reportData instanceof Uint8Array && reportData.length === 64) return reportData
  throw new ServiceError('invalid_report_data', 'report data must have 64 bytes')
}

/** An optional field of fixed length. Default: zeros. */
export function sized(name: string, bytes: Uint8Array | undefined, length: number): Uint8Array {
  if (bytes === undefined) return new Uint8Array(length)
  if (bytes.length !== length) throw invalidOption(`${name} must have ${length} bytes`)
  return bytes
}

export function invalidOption(details: string) {
  return new ServiceError('simulator_option_invalid', 'the simulator cannot make this', { details })
}

/** An invented measurement, the same for every seed. */
export function measure(name: string): Uint8Array {
  return sha384(new TextEncoder().encode(`countersign simulated ${name}`))
}
