import {
  basicConstraints,
  encodeCertificate,
  keyIdentifier,
  keyUsage,
  subjectKeyIdentifier,
  toPem,
  toSerial,
  type Validity,
} from './encodeCertificate.ts'
import { objectIdentifier, sequence } from './encodeDer.ts'

export type SelfSignedCertificateParameters = {
  commonName: string
  /** DER SubjectPublicKeyInfo of a P-256 key. */
  publicKey: Uint8Array
  /** ECDSA with SHA-256, as DER. */
  sign(message: Uint8Array): Uint8Array
  validity: Validity
}

/** A certificate for TLS with a key that a quote attests, in PEM. It states only the key. */
export function createSelfSignedCertificate(parameters: SelfSignedCertificateParameters): string {
  const { commonName, publicKey, sign, validity } = parameters
  const name = [['commonName', commonName]] as const
  // ecdsa-with-SHA256 (RFC 5758 §3.2).
  const issuer = { publicKey, algorithm: sequence(objectIdentifier('1.2.840.10045.4.3.2')), sign }
  const extensions = [subjectKeyIdentifier(publicKey), keyUsage('signature'), basicConstraints({ isCa: false })]
  const serial = toSerial(keyIdentifier(publicKey))
  return toPem(encodeCertificate({ serial, issuer: name, subject: name, validity, publicKey, extensions }, issuer))
}
