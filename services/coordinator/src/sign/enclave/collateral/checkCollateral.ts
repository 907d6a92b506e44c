import { hash, verify, X509Certificate } from 'node:crypto'
import {
  type Collateral,
  describeCollateral,
  parsePem,
  QuoteError,
  type QuoteErrorCode,
  type TrustedRoot,
} from '@countersign/attestation'
import type { Platform } from '@countersign/evidence'

export type CheckedCollateral = {
  /** The period, in milliseconds since 1970, in which every part is valid. */
  notBefore: number
  notAfter: number
  tcbEvaluationDataNumber: number
}

/**
 * Checks that Intel issued this collateral for this platform, and returns its period of validity. This decides only whether new collateral
 * may replace the old one; the verifier checks every quote against all of it. A genuine revocation therefore passes here. Throws
 * `QuoteError`.
 */
export function checkCollateral(
  collateral: Collateral,
  { platform, roots }: { platform: Platform; roots: readonly TrustedRoot[] },
): CheckedCollateral {
  const { tcbInfo, qeIdentity, rootCrl, pckCrl } = describeCollateral(collateral)
  if (tcbInfo.fmspc !== platform.fmspc) throw refused('tcb_info_mismatch', 'TCB info of another platform')

  const ca = platform.ca === 'platform' ? 'Platform' : 'Processor'
  const crlIssuer = readChain(collateral.pck_crl_issuer_chain, `Intel SGX PCK ${ca} CA`, roots)
  const tcbSigner = readChain(collateral.tcb_info_issuer_chain, 'Intel SGX TCB Signing', roots)
  const qeSigner = readChain(collateral.qe_identity_issuer_chain, 'Intel SGX TCB Signing', roots)
  assertCrlSigned(collateral.root_ca_crl, crlIssuer.root)
  assertCrlSigned(collateral.pck_crl, crlIssuer.leaf)
  assertTextSigned(collateral.tcb_info, collateral.tcb_info_signature, tcbSigner.leaf, 'tcb_info_signature_invalid')
  assertTextSigned(
    collateral.qe_identity,
    collateral.qe_identity_signature,
    qeSigner.leaf,
    'qe_identity_signature_invalid',
  )

  const certificates = [crlIssuer, tcbSigner, qeSigner].flatMap(({ leaf, root }) => [leaf, root])
  return {
    notBefore: Math.max(
      ...[tcbInfo.issueDate, qeIdentity.issueDate, rootCrl.thisUpdate, pckCrl.thisUpdate].map(Number),
      ...certificates.map(({ validFrom }) => Date.parse(validFrom)),
    ),
    notAfter: Math.min(
      ...[tcbInfo.nextUpdate, qeIdentity.nextUpdate, rootCrl.nextUpdate, pckCrl.nextUpdate].map(Number),
      ...certificates.map(({ validTo }) => Date.parse(validTo)),
    ),
    tcbEvaluationDataNumber: Math.min(tcbInfo.tcbEvaluationDataNumber, qeIdentity.tcbEvaluationDataNumber),
  }
}

/** Reads an issuer chain: the certificate with this name, and the pinned root that signed it. */
function readChain(pem: string, name: string, roots: readonly TrustedRoot[]) {
  const [leaf, root, ...rest] = parsePem(pem).map(toCertificate)
  if (leaf === undefined || root === undefined || rest.length > 0) throw refused('certificate_chain_invalid')
  const fingerprint = hash('sha256', root.raw, 'hex')
  if (!roots.some(({ vendor, certificateSha256 }) => vendor === 'intel' && certificateSha256 === fingerprint)) {
    throw refused('root_not_trusted')
  }
  const isNamed = leaf.subject.split('\n').includes(`CN=${name}`)
  if (!isNamed || !leaf.verify(root.publicKey)) throw refused('certificate_chain_invalid', name)
  return { leaf, root }
}

function toCertificate(der: Uint8Array): X509Certificate {
  try {
    return new X509Certificate(der)
  } catch (cause) {
    throw new QuoteError('certificate_malformed', 'malformed certificate', { cause })
  }
}

function assertTextSigned(
  text: string,
  signature: string,
  { publicKey }: X509Certificate,
  code: 'tcb_info_signature_invalid' | 'qe_identity_signature_invalid',
) {
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  if (!/^[0-9a-f]{128}$/.test(signature)) throw refused(code)
  if (!verify('sha256', Buffer.from(text), key, Buffer.from(signature, 'hex'))) throw refused(code)
}

function assertCrlSigned(hex: string, { publicKey }: X509Certificate) {
  const { tbs, signature } = splitSigned(Buffer.from(hex, 'hex'))
  if (!verify('sha256', tbs, publicKey, signature)) throw refused('crl_signature_invalid')
}

/** SEQUENCE { list, algorithm, BIT STRING } (RFC 5280 §5.1). `describeCollateral` has already parsed these bytes strictly. */
function splitSigned(der: Buffer) {
  const outer = readElement(der, 0)
  const list = readElement(der, outer.start)
  const algorithm = readElement(der, list.end)
  const signature = readElement(der, algorithm.end)
  // The first byte of a BIT STRING is its number of unused bits.
  return { tbs: der.subarray(outer.start, list.end), signature: der.subarray(signature.start + 1, signature.end) }
}

/** The offsets where the value of a DER element starts and ends. */
function readElement(der: Buffer, offset: number) {
  const first = der.readUInt8(offset + 1)
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const start = offset + 2 + lengthBytes
  return { start, end: start + (lengthBytes === 0 ? first : der.readUIntBE(offset + 2, lengthBytes)) }
}

function refused(code: QuoteErrorCode, details?: string) {
  return new QuoteError(code, 'collateral not accepted', details === undefined ? {} : { details })
}
