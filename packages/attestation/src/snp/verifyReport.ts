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

/** The certificates behind a report, DER: VCEK or VLEK, its ASK or ASVK, and the ARK. */
export type SnpCertificates = { ek: Bytes; ask: Bytes; ark: Bytes }

/** A genuine SEV-SNP report. What policy must still judge is in `flags`, the TCBs and the measurement of `body`. */
export type VerifiedReport = {
  body: ParsedReport
  /** The root that verified it. Only `root.mode` distinguishes hardware from mock. */
  root: TrustedRoot
  product: SnpProduct
  /** With stepping where AMD gives one, for example `Milan-B0`. */
  productName: string
  tcb: { reported: SnpTcb; current: SnpTcb; committed: SnpTcb; launch: SnpTcb }
  flags: ReportFlags
  /** When this verdict holds with these certificates. */
  validity: ValidityWindow
}

/** An endorsement key that is certified up to the root; the same for all reports of one chip at one TCB. */
export type VerifiedEndorsementKey = EndorsedKey & {
  root: TrustedRoot
  product: SnpProduct
  kind: ParsedReport['signingKey']
  key: CryptoKey
  window: ValidityWindow
}

/** ARK → ASK or ASVK → VCEK or VLEK. The names keep the branches apart: one cannot replace the other. */
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

/** Brings a report and its verified endorsement key together. */
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

/**
 * What a guest's policy allows (SNP ABI, "Guest Policy"), and what its platform says of itself (PLATFORM_INFO). None makes a report less
 * genuine; the reader's policy judges.
 */
export type ReportFlags = {
  debug: boolean
  migrationAgent: boolean
  smt: boolean
  singleSocket: boolean
  /** The firmware found no two addresses of one memory cell since the last reset. Never set in version 2, which has no bit for it. */
  aliasCheckComplete: boolean
  /** A policy bit that the specification does not define is set, or the one that must be set is not. */
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
    // Bit 17 is reserved and one; bits 0–15 are ABI versions, 21–25 hardening options; above, nothing is defined.
    reservedBits: !has(17n) || policy >> 26n !== 0n,
  }
}

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
