import { X509Certificate } from 'node:crypto'
import {
  type ParsedReport,
  parseReport,
  parseSnpTcb,
  QuoteError,
  type SnpProduct,
  toSnpProduct,
  type VerifiedReport,
  type Verifier,
} from '@countersign/attestation'
import {
  EvidenceError,
  type KdsClient,
  parseCertTable,
  type Report,
  readPemBundle,
  VendorError,
} from '@countersign/evidence'
import { isZero, toHex } from '@countersign/protocol'
import type { Log } from '@countersign/service'

/** The certificates of a report in DER: VCEK or VLEK, its ASK or ASVK, and the ARK. */
export type SnpChain = { ek: Uint8Array; ask: Uint8Array; ark: Uint8Array }

/** Finds certificates that verify a report. If none do, throws the reason of the last attempt. */
export type SnpCertificates = (
  evidence: Report,
  at: Date,
) => Promise<{ certificates: SnpChain; verified: VerifiedReport }>

export type SnpCertificatesDeps = {
  verifier: Pick<Verifier, 'verifyReport'>
  /** A PEM file with the certificates in any order, for hosts that provide none. */
  pem?: string
  /** AMD's key distribution service, if the guest may reach it. */
  kds?: KdsClient
  log: Pick<Log, 'info' | 'warn'>
}

/** The limit in receipts. */
const MAX_CERTIFICATE_BYTES = 16_384

/**
 * Tries the certificates that the host provided with the report, then a file, then AMD's KDS, and returns the first that verify the report.
 * None of these sources is trusted; the verifier's pinned root decides. Certificates that verified before are tried first, because the KDS
 * allows few requests.
 */
export function createSnpCertificates({ verifier, pem, kds, log }: SnpCertificatesDeps): SnpCertificates {
  let known: SnpChain | undefined

  return async (evidence, at) => {
    const report = parseReport(new Uint8Array(evidence.report))
    const sources: [string, () => Promise<SnpChain | undefined>][] = [
      ['known', async () => known],
      ['host', () => fromHost(evidence.certificates, report, kds)],
      ['file', async () => (pem === undefined ? undefined : fromPem(pem, report))],
      ['kds', async () => (kds === undefined ? undefined : fromKds(kds, report))],
    ]
    let failure: unknown
    for (const [source, find] of sources) {
      try {
        const certificates = await find()
        if (certificates === undefined) continue
        const lengths = [certificates.ek, certificates.ask, certificates.ark].map(({ length }) => length)
        if (Math.max(...lengths) > MAX_CERTIFICATE_BYTES) throw new QuoteError('certificate_malformed', 'too large')
        const verified = await verifier.verifyReport({ report: evidence.report, certificates, at })
        known = certificates
        return { certificates, verified }
      } catch (error) {
        if (!(error instanceof QuoteError || error instanceof EvidenceError || error instanceof VendorError))
          throw error
        log.warn({ msg: 'Could not use SNP certificates', source, code: error.code, reason: error.details })
        if (source === 'known') known = undefined
        failure = error
      }
    }
    throw failure ?? new VendorError('certificates_missing', 'neither host, file nor KDS has SNP certificates')
  }
}

/** A host may provide only the endorsement key's certificate. The ones above it are the same for all chips. */
async function fromHost(table: Uint8Array | undefined, report: ParsedReport, kds: KdsClient | undefined) {
  const { vcek, vlek, ask, ark } = parseCertTable(table ?? new Uint8Array())
  const ek = report.signingKey === 'VLEK' ? vlek : vcek
  if (ek === undefined) return undefined
  if (ask !== undefined && ark !== undefined) return { ek, ask, ark }
  if (kds === undefined) return undefined
  const chain = await firstOf(toProducts(report), (product) => kds.getChain({ product, kind: report.signingKey }))
  return chain && { ek, ...chain }
}

function fromPem(pem: string, { signingKey }: ParsedReport): SnpChain | undefined {
  const named = readPemBundle(pem).map((der) => ({ der, name: toCommonName(der) }))
  const find = (pattern: RegExp) => named.find(({ name }) => pattern.test(name))?.der
  const ek = find(signingKey === 'VLEK' ? /^SEV-VLEK$/ : /^SEV-VCEK$/)
  const ask = find(signingKey === 'VLEK' ? /^SEV-VLEK-\w+$/ : /^SEV-(?!VCEK$|VLEK)\w+$/)
  const ark = find(/^ARK-\w+$/)
  return ek && ask && ark && { ek, ask, ark }
}

function toCommonName(der: Uint8Array): string {
  try {
    return /^CN=(.*)$/m.exec(new X509Certificate(der).subject)?.[1] ?? ''
  } catch (cause) {
    throw new QuoteError('certificate_malformed', 'malformed certificate', { cause })
  }
}

/** The KDS finds chips by their id. It can't help with VLEKs, or if the host hides the id. */
async function fromKds(kds: KdsClient, report: ParsedReport): Promise<SnpChain | undefined> {
  if (report.signingKey !== 'VCEK' || isZero(report.chipId)) return undefined
  return firstOf(toProducts(report), async (product) => {
    const tcb = parseSnpTcb(report.reportedTcb, product)
    const ek = await kds.getVcek({ product, chipId: report.chipId, tcb })
    return { ek, ...(await kds.getChain({ product, kind: 'VCEK' })) }
  })
}

/** Reports before version 3 don't name the processor. There were two products then. */
function toProducts({ cpuid }: ParsedReport): SnpProduct[] {
  if (cpuid === undefined) return ['Milan', 'Genoa']
  const product = toSnpProduct(cpuid)
  return product === undefined ? [] : [product]
}

/** AMD rejects the wrong product. */
async function firstOf<Value>(products: readonly SnpProduct[], get: (product: SnpProduct) => Promise<Value>) {
  let failure: unknown
  for (const product of products) {
    try {
      return await get(product)
    } catch (error) {
      if (!(error instanceof VendorError && error.code === 'vendor_refused')) throw error
      failure = error
    }
  }
  if (failure !== undefined) throw failure
  return undefined
}

/** Converts the chain to hex, as in receipts. */
export function toHexChain({ ek, ask, ark }: SnpChain): { ek: string; ask: string; ark: string } {
  return { ek: toHex(ek), ask: toHex(ask), ark: toHex(ark) }
}
