import { createHash, X509Certificate } from 'node:crypto'
import type { TrustedRoot } from '@countersign/attestation'

/** Pins a root certificate that somebody else chose, by the platform's own X.509 code. */
export function toTrustedRoot(certificate: Uint8Array, vendor: TrustedRoot['vendor']): TrustedRoot {
  const parsed = new X509Certificate(certificate)
  const name = /^CN=(.*)$/m.exec(parsed.subject)?.[1] ?? parsed.subject
  return {
    vendor,
    name,
    mode: 'mock',
    certificateSha256: createHash('sha256').update(certificate).digest('hex'),
    publicKey: parsed.publicKey.export({ type: 'spki', format: 'der' }).toString('hex'),
  }
}
