import { isZero } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * An SEV-SNP attestation report, version 2, 3 or 5 (AMD 56860, section 7.3, table ATTESTATION_REPORT; evidence.md, section 9.1).
 * Byte fields are views of the report. Its numbers are little-endian.
 */
export type ParsedReport = {
  version: 2 | 3 | 5
  guestSvn: number
  policy: bigint
  familyId: Bytes
  imageId: Bytes
  vmpl: number
  platformInfo: bigint
  signingKey: 'VCEK' | 'VLEK'
  authorKeyEnabled: boolean
  maskChipKey: boolean
  reportData: Bytes
  measurement: Bytes
  hostData: Bytes
  idKeyDigest: Bytes
  authorKeyDigest: Bytes
  reportId: Bytes
  reportIdMa: Bytes
  /** Raw TCB_VERSION values. Their layout depends on the product. */
  currentTcb: Bytes
  reportedTcb: Bytes
  committedTcb: Bytes
  launchTcb: Bytes
  /** From version 3 on. */
  cpuid: { family: number; model: number; stepping: number } | undefined
  chipId: Bytes
  /** Bytes 0x000 to 0x29f, which the signature covers. */
  signed: Bytes
  /** r ‖ s, big-endian, 48 bytes each. */
  signature: Bytes
}

/** In every version. */
export const SNP_REPORT_BYTES = 1184
const SIGNED_BYTES = 0x2a0
const ECDSA_P384_SHA384 = 1

/** Reads a report strictly: exact length, and zero in every reserved byte. */
export function parseReport(report: Bytes): ParsedReport {
  if (report.length !== SNP_REPORT_BYTES)
    throw malformed(`${report.length} bytes where ${SNP_REPORT_BYTES} are expected`)
  const view = new DataView(report.buffer, report.byteOffset, report.byteLength)
  const version = view.getUint32(0x000, true)
  if (version !== 2 && version !== 3 && version !== 5) throw unsupported(`report version ${version}`)
  if (view.getUint32(0x034, true) !== ECDSA_P384_SHA384) throw unsupported('signature algorithm')
  const keyInfo = view.getUint32(0x048, true)
  const field = (offset: number, length: number) => report.subarray(offset, offset + length)
  for (const [start, end] of reservedRanges(version)) {
    if (!isZero(report.subarray(start, end))) throw malformed(`reserved bytes at 0x${start.toString(16)} are not zero`)
  }
  if (keyInfo >>> 5 !== 0) throw malformed('reserved bits at 0x48 are not zero')
  return {
    version,
    guestSvn: view.getUint32(0x004, true),
    policy: view.getBigUint64(0x008, true),
    familyId: field(0x010, 16),
    imageId: field(0x020, 16),
    vmpl: view.getUint32(0x030, true),
    currentTcb: field(0x038, 8),
    platformInfo: view.getBigUint64(0x040, true),
    authorKeyEnabled: (keyInfo & 1) === 1,
    maskChipKey: (keyInfo & 2) === 2,
    signingKey: toSigningKey((keyInfo >> 2) & 7),
    reportData: field(0x050, 64),
    measurement: field(0x090, 48),
    hostData: field(0x0c0, 32),
    idKeyDigest: field(0x0e0, 48),
    authorKeyDigest: field(0x110, 48),
    reportId: field(0x140, 32),
    reportIdMa: field(0x160, 32),
    reportedTcb: field(0x180, 8),
    cpuid:
      version === 2
        ? undefined
        : { family: view.getUint8(0x188), model: view.getUint8(0x189), stepping: view.getUint8(0x18a) },
    chipId: field(0x1a0, 64),
    committedTcb: field(0x1e0, 8),
    launchTcb: field(0x1f0, 8),
    signed: field(0, SIGNED_BYTES),
    signature: toRawSignature(report),
  }
}

/** Reserved bytes by version: version 3 added the CPUID fields at 0x188, version 5 the mitigation vectors at 0x1f8. */
function reservedRanges(version: 2 | 3 | 5): [number, number][] {
  return [
    [0x04c, 0x050],
    [version === 2 ? 0x188 : 0x18b, 0x1a0],
    [0x1eb, 0x1ec],
    [0x1ef, 0x1f0],
    [version === 5 ? 0x208 : 0x1f8, SIGNED_BYTES],
    // r (at 0x2a0) and s (at 0x2e8) fill 48 of 72 bytes each. The rest of the signature's 512 bytes is reserved.
    [SIGNED_BYTES + 48, SIGNED_BYTES + 72],
    [SIGNED_BYTES + 120, SIGNED_BYTES + 144],
    [SIGNED_BYTES + 144, SNP_REPORT_BYTES],
  ]
}

function toSigningKey(value: number): ParsedReport['signingKey'] {
  if (value === 0) return 'VCEK'
  if (value === 1) return 'VLEK'
  throw unsupported('the report is not signed')
}

/** Little-endian r and s to big-endian r ‖ s. */
function toRawSignature(report: Bytes): Bytes {
  const raw = new Uint8Array(96)
  raw.set(report.slice(SIGNED_BYTES, SIGNED_BYTES + 48).reverse(), 0)
  raw.set(report.slice(SIGNED_BYTES + 72, SIGNED_BYTES + 120).reverse(), 48)
  return raw
}

function malformed(details: string) {
  return new QuoteError('report_malformed', 'malformed report', { details })
}

function unsupported(details: string) {
  return new QuoteError('report_unsupported', 'unsupported report', { details })
}
