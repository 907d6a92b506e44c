import { importEcKey, verifyEcdsa } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TrustedRoot } from '../roots.ts'
import { parseCertificate } from '../x509/parseCertificate.ts'
import { parseCrl } from '../x509/parseCrl.ts'
import {
  assertNotRevoked,
  type CertificateReader,
  findRoot,
  intersectWindows,
  type ValidityWindow,
  verifyChain,
  verifyCrl,
} from '../x509/verifyChain.ts'
import {
  type EndorsedKey,
  isProductName,
  isSameChip,
  isSameTcb,
  parseEndorsementExtensions,
  parseSnpTcb,
  type SnpProduct,
  type SnpTcb,
  snpProducts,
  toSnpProduct,
} from './endorsementKey.ts'
import type { ParsedReport } from './parseReport.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The certificate chain of a report, DER: VCEK or VLEK, ASK or ASVK, ARK. */
export type SnpCertificates = { ek: Bytes; ask: Bytes; ark: Bytes }

/** A genuine SEV-SNP report. A policy must still check `flags`, the TCBs and the measurement in `body`. */
export type VerifiedReport = {
  body: ParsedReport
  /** The root that verified it. Only `root.mode` distinguishes hardware from mock. */
  root: TrustedRoot
  product: SnpProduct
  /** With a stepping if AMD states one, such as `Milan-B0`. */
  productName: string
  tcb: { reported: SnpTcb; current: SnpTcb; committed: SnpTcb; launch: SnpTcb }
  flags: ReportFlags
  /** When the certificates are valid. */
  validity: ValidityWindow
}

/** An endorsement key with a verified chain. All reports of a chip at one TCB share it. */
export type VerifiedEndorsementKey = EndorsedKey & {
  root: TrustedRoot
  product: SnpProduct
  kind: ParsedReport['signingKey']
  key: CryptoKey
  window: ValidityWindow
}

/** ARK → ASK → VCEK, or ARK → ASVK → VLEK. The names prevent a certificate of one branch in the other. */
export async function verifyEndorsementKey(
  context: { reader: CertificateReader; roots: readonly TrustedRoot[]; at: number },
  certificates: SnpCertificates,
): Promise<VerifiedEndorsementKey> {
  const [ek, ask, ark] = [certificates.ek, certificates.ask, certificates.ark].map(parseCertificate)
  if (ek === undefined || ask === undefined || ark === undefined) throw invalidChain('incomplete chain')
  const product = toProduct(ark.commonName)
  const kind = ek.commonName === 'SEV-VLEK' ? 'VLEK' : 'VCEK'
  const askName = kind === 'VLEK' ? `SEV-VLEK-${product}` : `SEV-${product}`
  if (ek.commonName !== `SEV-${kind}` || ask.commonName !== askName) {
    throw invalidChain(`${ek.commonName} under ${ask.commonName}`)
  }
  const { publicKey } = ek
  if (publicKey.kind !== 'ec' || publicKey.curve !== 'P-384' || ek.isCa) throw invalidChain('not a P-384 leaf')
  const endorsed = parseEndorsementExtensions(ek, product)
  if (!isProductName(endorsed.productName, product)) throw invalidChain(`${endorsed.productName} under ${product}`)
  const root = await verifyChain(context.reader, { ...context, chain: [ek, ask, ark] })
  return {
    ...endorsed,
    root,
    product,
    kind,
    key: await importEcKey('P-384', publicKey.point),
    window: intersectWindows([ek, ask, ark]),
  }
}

function toProduct(commonName: string): SnpProduct {
  const product = snpProducts.find((candidate) => commonName === `ARK-${candidate}`)
  if (product === undefined) throw invalidChain(commonName)
  return product
}

/** Verifies a report with its verified endorsement key. */
export async function verifyReport(body: ParsedReport, endorsed: VerifiedEndorsementKey): Promise<VerifiedReport> {
  if (body.signingKey !== endorsed.kind)
    throw invalidChain(`a ${endorsed.kind} where the report names ${body.signingKey}`)
  if (!(await verifyEcdsa(endorsed.key, 'P-384', body.signature, body.signed))) {
    throw new QuoteError('report_signature_invalid', 'report signature invalid')
  }
  const { product, hwId } = endorsed
  const reported = parseSnpTcb(body.reportedTcb, product)
  if (!isSameTcb(reported, endorsed.tcb)) {
    throw new QuoteError('report_tcb_mismatch', 'the certificate is for another TCB than the report')
  }
  if (endorsed.kind === 'VCEK' && (hwId === undefined || !isSameChip(hwId, body.chipId))) {
    throw new QuoteError('report_chip_mismatch', 'the certificate is for another chip than the report')
  }
  if (body.cpuid !== undefined && toSnpProduct(body.cpuid) !== product) {
    throw new QuoteError('report_chip_mismatch', 'the certificate is for another processor than the report')
  }
  return {
    body,
    root: endorsed.root,
    product,
    productName: endorsed.productName,
    tcb: {
      reported,
      current: parseSnpTcb(body.currentTcb, product),
      committed: parseSnpTcb(body.committedTcb, product),
      launch: parseSnpTcb(body.launchTcb, product),
    },
    flags: readReportFlags(body),
    validity: endorsed.window,
  }
}

function invalidChain(details: string) {
  return new QuoteError('certificate_chain_invalid', 'certificate chain invalid', { details })
}

/** Bits of POLICY (AMD 56860, section 4.3) and PLATFORM_INFO. All values are genuine; the reader's policy accepts or rejects them. */
export type ReportFlags = {
  debug: boolean
  migrationAgent: boolean
  smt: boolean
  singleSocket: boolean
  /** PLATFORM_INFO bit 5: the firmware checked the memory for aliases. Never set in version 2, which has no such bit. */
  aliasCheckComplete: boolean
  /** An undefined policy bit is set, or bit 17 is clear. */
  reservedBits: boolean
}

export function readReportFlags({ policy, platformInfo, version }: ParsedReport): ReportFlags {
  const has = (bit: bigint) => ((policy >> bit) & 1n) === 1n
  return {
    smt: has(16n),
    migrationAgent: has(18n),
    debug: has(19n),
    singleSocket: has(20n),
    aliasCheckComplete: version !== 2 && ((platformInfo >> 5n) & 1n) === 1n,
    // Bits 0–15: ABI version, 17: reserved, must be one, 21–25: hardening options, 26–63: undefined.
    reservedBits: !has(17n) || policy >> 26n !== 0n,
  }
}

/** AMD's revocation list, which lists none of a report's certificates. */
export type VerifiedRevocations = {
  thisUpdate: Date
  nextUpdate: Date
  /** The number of certificates that it lists. */
  revoked: number
}

/**
 * Checks certificates against AMD's revocation list of their product, which the ARK signs (AMD 57230; evidence.md, section 9.7). The
 * list is about certificates that the ARK issued. An entry with the serial number of the EK or the ARK revokes that one too, since
 * the entry could mean any of them.
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
