import type { TrustedRoot } from '../roots.ts'
import { parseCertificate } from '../x509/parseCertificate.ts'
import { parseCrl } from '../x509/parseCrl.ts'
import { assertNotRevoked, type CertificateReader, findRoot, verifyCrl } from '../x509/verifyChain.ts'
import type { SnpCertificates } from './verifyReport.ts'

/** A revocation list of AMD that names none of a report's certificates. */
export type VerifiedRevocations = {
  thisUpdate: Date
  nextUpdate: Date
  /** How many certificates it lists. */
  revoked: number
}

/**
 * Judges certificates by AMD's revocation list of their product (AMD KDS specification 57230), which the product's root key signs. It
 * speaks of the keys right below that root. An entry with the serial number of the endorsement key or of the root itself is taken at
 * its word too: which of them it means cannot be told, and none may be used then.
 */
export async function verifyRevocations(
  { reader, roots, at }: { reader: CertificateReader; roots: readonly TrustedRoot[]; at: number },
  { certificates, list }: { certificates: SnpCertificates; list: Uint8Array<ArrayBuffer> },
): Promise<VerifiedRevocations> {
  const ark = parseCertificate(certificates.ark)
  await findRoot(reader, ark, roots)
  const crl = parseCrl(list)
  const { notBefore, notAfter } = await verifyCrl(reader, { crl, issuer: ark, at })
  for (const der of [certificates.ask, certificates.ek]) assertNotRevoked(parseCertificate(der), crl)
  assertNotRevoked(ark, crl)
  return { thisUpdate: new Date(notBefore), nextUpdate: new Date(notAfter), revoked: crl.revoked.size }
}
