import { concatBytes, fromHex } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { toPem } from '../x509/encodeCertificate.ts'
import { type IntelPki, OTHER_FMSPC, OTHER_PCE_ID, type PckOptions } from './intelPki.ts'
import { derive, invalidOption, type Memo, measure, sized, toReportData } from './keys.ts'
import {
  isRelaunchStatus,
  platformSvns,
  qeSvn,
  type SimulatedPartStatus,
  type SimulatedTcbStatus,
  teeTcbSvn,
} from './tcbLevels.ts'

/** Each adds one fault to a genuine quote, before the quote is signed unless a fault says otherwise. */
export type SimulatedQuoteFaults = {
  /** The header says SGX. */
  teeTypeSgx?: boolean
  /** The header says ECDSA-P384. */
  wrongAttestationKeyType?: boolean
  wrongQeVendor?: boolean
  wrongOuterCertificationType?: boolean
  wrongInnerCertificationType?: boolean
  qeWrongMrSigner?: boolean
  qeDebug?: boolean
  qeWrongProductId?: boolean
  /** An attribute under the mask of the QE identity differs. */
  qeWrongAttributes?: boolean
  qeWrongMiscSelect?: boolean
  /** The QE's report data is not the hash of the attestation key and the authentication data. */
  qeReportDataUnbound?: boolean
  /** The QE's report data is not zero after that hash. */
  qeReportDataTail?: boolean
  qeReportWrongSigner?: boolean
  quoteWrongSigner?: boolean
  /** A bit of the report data changed after signing. */
  reportDataFlipped?: boolean
  moduleWrongMrSigner?: boolean
  moduleAttributesSet?: boolean
  pckCaNotCa?: boolean
  /** A chain with the right names under the root of another seed. */
  pckForeignRoot?: boolean
  pckExpired?: boolean
  pckNotYetValid?: boolean
  pckOtherFmspc?: boolean
  pckOtherPceId?: boolean
  pckWrongName?: boolean
  /** The PCK CA precedes the PCK certificate. */
  chainSwapped?: boolean
  chainExtraCertificate?: boolean
  chainWithoutRoot?: boolean
}

export type SimulatedQuoteOptions = {
  /** 64 bytes. */
  reportData: Uint8Array
  /** 4 by default; 5 for the two `TDRelaunchAdvised` statuses. */
  version?: 4 | 5
  /** The body of a version 5 quote, `td15` by default. */
  body?: 'td10' | 'td15'
  mrtd?: Uint8Array
  rtmrs?: readonly [Uint8Array, Uint8Array, Uint8Array, Uint8Array]
  mrConfigId?: Uint8Array
  mrOwner?: Uint8Array
  mrOwnerConfig?: Uint8Array
  mrServiceTd?: Uint8Array
  mrSeam?: Uint8Array
  /** Only SEPT_VE_DISABLE (bit 28) by default. */
  tdAttributes?: Uint8Array
  xfam?: Uint8Array
  /** Replaces the value from `status`, `moduleStatus` and `moduleVersion`. */
  teeTcbSvn?: Uint8Array
  teeTcbSvn2?: Uint8Array
  /** The platform's level in the default collateral, and the resulting status if QE and module are up to date. */
  status?: SimulatedTcbStatus
  qeStatus?: SimulatedPartStatus
  moduleStatus?: SimulatedPartStatus
  /** 0 is TDX 1.0. The default collateral has identities for 1 (the default) and 3 only. */
  moduleVersion?: number
  /** Bytes after the signature. */
  trailing?: Uint8Array
  faults?: SimulatedQuoteFaults
}

export type QuoteDeps = { seed: string; memo: Memo; pki: IntelPki; foreignPki: IntelPki }

/** A quote of version 4 or 5 (Intel TDX DCAP Quoting Library API, appendix A.3). */
export function createQuote(deps: QuoteDeps, options: SimulatedQuoteOptions): Uint8Array {
  const { faults = {}, trailing = new Uint8Array() } = options
  const { version, bodyType } = chooseFormat(options)
  const body = encodeBody(options, bodyType)
  const prefix = version === 5 ? concatBytes(uint16(bodyType), uint32(body.length)) : new Uint8Array()
  const message = concatBytes(encodeHeader(deps, version, faults), prefix, body)

  const signer = faults.quoteWrongSigner ? deps.pki.strayKey() : deps.pki.attestationKey()
  const signature = concatBytes(
    signer.signRaw(message),
    deps.pki.attestationKey().point,
    encodeCertification(deps, options),
  )
  if (faults.reportDataFlipped) {
    const offset = message.length - body.length + REPORT_DATA_OFFSET
    message[offset] = (message[offset] ?? 0) ^ 1
  }
  return concatBytes(message, uint32(signature.length), signature, trailing)
}

/** REPORTDATA is at the end of TD report 1.0. */
const REPORT_DATA_OFFSET = 520
const BODY_TD10 = 2
const BODY_TD15 = 3

function chooseFormat(options: SimulatedQuoteOptions) {
  const needsTd15 = options.status !== undefined && isRelaunchStatus(options.status)
  const version = options.version ?? (needsTd15 || options.body !== undefined ? 5 : 4)
  const bodyType = version === 5 && options.body !== 'td10' ? BODY_TD15 : BODY_TD10
  if (version === 4 && options.body === 'td15') throw invalidOption('a version 4 quote has a TD 1.0 body')
  if (needsTd15 && bodyType !== BODY_TD15) throw invalidOption('relaunch is advised only to a TD 1.5 body')
  if (needsTd15 && options.moduleVersion === 0) throw invalidOption('relaunch is never advised to a TDX 1.0 module')
  return { version, bodyType }
}

/** 48 bytes. */
function encodeHeader({ seed }: QuoteDeps, version: number, faults: SimulatedQuoteFaults): Uint8Array {
  return concatBytes(
    uint16(version),
    uint16(faults.wrongAttestationKeyType ? 3 : 2), // 2: ECDSA-256-with-P-256
    uint32(faults.teeTypeSgx ? 0 : 0x81),
    new Uint8Array(4), // reserved; real quotes leave the QE and PCE SVNs of older formats zero
    fromHex(faults.wrongQeVendor ? '939a7233f79c4ca9940a0db3957f0608' : '939a7233f79c4ca9940a0db3957f0607'),
    derive(seed, 'qe id', 16),
    new Uint8Array(4),
  )
}

/** TD report 1.0 (584 bytes), or TD report 1.5 (648 bytes), which adds TEE_TCB_SVN_2 and MRSERVICETD. */
function encodeBody(options: SimulatedQuoteOptions, bodyType: number): Uint8Array {
  const { faults = {}, status = 'UpToDate', moduleVersion = 1 } = options
  const moduleStatus = options.moduleStatus ?? (isRelaunchStatus(status) ? 'OutOfDate' : 'UpToDate')
  const { svn } = platformSvns(status)
  const launched = options.teeTcbSvn ?? teeTcbSvn({ status: moduleStatus, version: moduleVersion }, svn)
  // For a relaunch status, an old module launched the TD, and the latest one runs it.
  const latest = teeTcbSvn({ status: 'UpToDate', version: moduleVersion }, platformSvns('UpToDate').svn)
  const current = options.teeTcbSvn2 ?? (isRelaunchStatus(status) ? latest : launched)
  const rtmrs = options.rtmrs ?? [measure('RTMR0'), measure('RTMR1'), measure('RTMR2'), new Uint8Array(48)]

  return concatBytes(
    sized('teeTcbSvn', launched, 16),
    sized('mrSeam', options.mrSeam ?? measure('MRSEAM'), 48),
    new Uint8Array(48).fill(faults.moduleWrongMrSigner ? 1 : 0), // MRSIGNERSEAM: zero for Intel's module
    Uint8Array.of(faults.moduleAttributesSet ? 1 : 0, 0, 0, 0, 0, 0, 0, 0),
    sized('tdAttributes', options.tdAttributes ?? fromHex('0000001000000000'), 8),
    sized('xfam', options.xfam ?? fromHex('e702060000000000'), 8),
    sized('mrtd', options.mrtd ?? measure('MRTD'), 48),
    sized('mrConfigId', options.mrConfigId, 48),
    sized('mrOwner', options.mrOwner, 48),
    sized('mrOwnerConfig', options.mrOwnerConfig, 48),
    ...rtmrs.map((rtmr) => sized('rtmrs', rtmr, 48)),
    toReportData(options.reportData),
    ...(bodyType === BODY_TD15
      ? [sized('teeTcbSvn2', current, 16), sized('mrServiceTd', options.mrServiceTd, 48)]
      : []),
  )
}

/** Certification data of type 6: the QE's report, its signature by the PCK, authentication data, and a type 5 PEM chain. */
function encodeCertification(deps: QuoteDeps, options: SimulatedQuoteOptions): Uint8Array {
  const { status = 'UpToDate', qeStatus = 'UpToDate', faults = {} } = options
  return deps.memo(`certification ${JSON.stringify([status, qeStatus, faults])}`, () => {
    const pki = faults.pckForeignRoot ? deps.foreignPki : deps.pki
    const authentication = Uint8Array.from({ length: 32 }, (_, index) => index)
    const report = encodeQeReport(deps, { status, qeStatus, faults, authentication })
    const signer = faults.qeReportWrongSigner ? pki.strayKey() : pki.pckKey(status)
    // Real chains end with a NUL, which the length counts.
    const chain = concatBytes(new TextEncoder().encode(toPem(...pckChain(pki, status, faults))), Uint8Array.of(0))
    const certification = concatBytes(
      report,
      signer.signRaw(report),
      uint16(authentication.length),
      authentication,
      uint16(faults.wrongInnerCertificationType ? 3 : 5),
      uint32(chain.length),
      chain,
    )
    return concatBytes(uint16(faults.wrongOuterCertificationType ? 7 : 6), uint32(certification.length), certification)
  })
}

type QeReportFields = {
  status: SimulatedTcbStatus
  qeStatus: SimulatedPartStatus
  faults: SimulatedQuoteFaults
  authentication: Uint8Array
}

/** MRSIGNER of Intel's TD quoting enclave, and of the simulated QE identity. */
export const QE_MRSIGNER = 'dc9e2a7c6f948f17474e34a7fc43ed030f7c1563f1babddf6340c82e0e54a8c5'
export const QE_PRODUCT_ID = 2

/** An SGX REPORT body, 384 bytes (Intel SDM volume 3D, REPORT). */
function encodeQeReport({ pki }: QuoteDeps, { status, qeStatus, faults, authentication }: QeReportFields): Uint8Array {
  const { svn } = platformSvns(status)
  const report = new Uint8Array(384)
  const view = new DataView(report.buffer)
  report.set([svn, svn, 0x19, 0x1b, 0x04, 0xff, 0x00, 0x06], 0) // CPUSVN
  report[16] = faults.qeWrongMiscSelect ? 1 : 0
  // ATTRIBUTES: INIT, MODE64BIT and PROVISION_KEY; the identity's mask ignores MODE64BIT and all of XFRM.
  report[48] = 0x15 | (faults.qeDebug ? 0x02 : 0) | (faults.qeWrongAttributes ? 0x20 : 0)
  report[56] = 0xe7
  report.set(sha256(new TextEncoder().encode('countersign simulated TD quoting enclave')), 64) // MRENCLAVE
  report.set(fromHex(QE_MRSIGNER), 128)
  if (faults.qeWrongMrSigner) report[128] = 0
  view.setUint16(256, faults.qeWrongProductId ? QE_PRODUCT_ID + 1 : QE_PRODUCT_ID, true)
  view.setUint16(258, qeSvn(qeStatus), true)
  const binding = sha256(concatBytes(pki.attestationKey().point, authentication))
  report.set(faults.qeReportDataUnbound ? sha256(binding) : binding, 320)
  if (faults.qeReportDataTail) report[352] = 1
  return report
}

function pckChain(pki: IntelPki, status: SimulatedTcbStatus, faults: SimulatedQuoteFaults): Uint8Array[] {
  const options: PckOptions = {
    status,
    ...(faults.pckExpired ? { validity: 'past' } : faults.pckNotYetValid ? { validity: 'future' } : {}),
    ...(faults.pckOtherFmspc ? { fmspc: OTHER_FMSPC } : {}),
    ...(faults.pckOtherPceId ? { pceId: OTHER_PCE_ID } : {}),
    ...(faults.pckWrongName ? { commonName: 'Intel SGX TCB Signing' } : {}),
  }
  const pck = pki.pck(options)
  const pckCa = pki.pckCa({ isCa: !faults.pckCaNotCa })
  return [
    ...(faults.chainSwapped ? [pckCa, pck] : [pck, pckCa]),
    ...(faults.chainWithoutRoot ? [] : [pki.root()]),
    ...(faults.chainExtraCertificate ? [pki.tcbSigning()] : []),
  ]
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, value >> 8)
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, value >>> 24)
}
