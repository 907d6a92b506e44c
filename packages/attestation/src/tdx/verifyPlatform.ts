import { concatBytes, equalBytes, isZero } from '@countersign/protocol/core'
import { digest, importEcKey, inOrder, verifyEcdsa } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TrustedRoot } from '../roots.ts'
import type { Certificate } from '../x509/parseCertificate.ts'
import { type CertificateReader, intersectWindows, type ValidityWindow, verifyChain } from '../x509/verifyChain.ts'
import type { ParsedQuote } from './parseQuote.ts'
import { type PckPlatform, parsePckExtension } from './pckCertificate.ts'

/** A platform with a verified chain from the attestation key to the root. All its quotes share it. */
export type VerifiedPlatform = {
  root: TrustedRoot
  pck: Certificate
  pckCa: Certificate
  platform: PckPlatform
  attestationKey: CryptoKey
  window: ValidityWindow
}

const UNCOMPRESSED = new Uint8Array([4])

/** root → PCK CA → PCK → QE report → attestation key (QVL `PckCertVerifier`, and `QuoteVerifier` 4.1.2.4.12–13). */
export async function verifyPlatform(
  context: { reader: CertificateReader; roots: readonly TrustedRoot[]; at: number },
  quote: ParsedQuote,
): Promise<VerifiedPlatform> {
  const { reader } = context
  const [pck, pckCa, root, ...rest] = reader.readPem(quote.pckChain)
  if (pck === undefined || pckCa === undefined || root === undefined || rest.length > 0) {
    throw invalidChain('the PCK chain does not have three certificates')
  }
  if (pck.commonName !== 'Intel SGX PCK Certificate') throw invalidChain(pck.commonName)
  const { publicKey } = pck
  if (publicKey.kind !== 'ec' || publicKey.curve !== 'P-256' || pck.isCa) throw invalidChain(pck.commonName)
  const platform = parsePckExtension(pck)
  const [trustedRoot, , , attestationKey] = await inOrder([
    verifyChain(reader, { ...context, chain: [pck, pckCa, root] }),
    verifyQeReport(reader, pck, quote),
    verifyKeyBinding(quote),
    importEcKey('P-256', concatBytes(UNCOMPRESSED, quote.attestationKey)),
  ])
  return { root: trustedRoot, pck, pckCa, platform, attestationKey, window: intersectWindows([pck, pckCa, root]) }
}

async function verifyQeReport(reader: CertificateReader, pck: Certificate, quote: ParsedQuote) {
  const key = await reader.keyOf(pck)
  if (await verifyEcdsa(key, 'P-256', quote.qeReportSignature, quote.qeReport.raw)) return
  throw new QuoteError('qe_report_signature_invalid', 'QE report signature invalid')
}

/** Report data of the QE: SHA-256(attestation key ‖ authentication data), then 32 zero bytes. */
async function verifyKeyBinding({ attestationKey, qeAuthData, qeReport }: ParsedQuote) {
  const binding = await digest('SHA-256', concatBytes(attestationKey, qeAuthData))
  const { reportData } = qeReport
  if (equalBytes(binding, reportData.subarray(0, 32)) && isZero(reportData.subarray(32))) return
  throw new QuoteError('qe_report_data_mismatch', 'the QE report does not bind the attestation key')
}

function invalidChain(details: string) {
  return new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details })
}
