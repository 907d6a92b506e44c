import type { SnpProduct } from '../snp/endorsementKey.ts'
import { type AmdPki, defaultTcb, encodeTcb, type SnpSigningKey, type SnpTcb } from './amdPki.ts'
import { derive, measure, sized, toReportData } from './keys.ts'

/** Each adds one fault to a genuine report. */
export type SimulatedReportFaults = {
  /** A bit of the report data changed after signing. */
  reportDataFlipped?: boolean
  wrongSigner?: boolean
  /** A reserved byte under the signature is not zero. */
  reservedByteSet?: boolean
  /** A byte after the signature is not zero. */
  tailByteSet?: boolean
  /** Bytes above the 48 of r are not zero. */
  signaturePaddingSet?: boolean
  wrongSignatureAlgorithm?: boolean
}

export type SimulatedReportOptions = {
  /** 64 bytes. */
  reportData: Uint8Array
  /** Milan by default. */
  product?: SnpProduct
  /** 3 by default. */
  version?: 2 | 3 | 5
  measurement?: Uint8Array
  hostData?: Uint8Array
  /** GUEST_POLICY (56860, §4.3). Default: SMT, and bit 17, which is reserved and must be one. */
  policy?: bigint
  vmpl?: number
  platformInfo?: bigint
  signingKey?: SnpSigningKey
  /** Also the TCB of the signing key, the current TCB, and the default of the other two. */
  reportedTcb?: SnpTcb
  committedTcb?: SnpTcb
  launchTcb?: SnpTcb
  /** Family, model and stepping, from version 3 on. Default: those of the product. */
  cpuid?: { family: number; model: number; stepping: number }
  /** The signing chip. Default under a VLEK: zeros. */
  chipId?: Uint8Array
  faults?: SimulatedReportFaults
}

export type ReportDeps = { seed: string; pki: AmdPki }

const REPORT_LENGTH = 0x4a0
const SIGNED_LENGTH = 0x2a0
const ECDSA_P384_SHA384 = 1
const cpuids = {
  Milan: { family: 0x19, model: 1, stepping: 1 },
  Genoa: { family: 0x19, model: 0x11, stepping: 1 },
  Turin: { family: 0x1a, model: 2, stepping: 1 },
}

/** ATTESTATION_REPORT of the SEV-SNP firmware ABI (56860, §7.3), with its offsets. */
export function createReport({ seed, pki }: ReportDeps, options: SimulatedReportOptions): Uint8Array {
  const { version = 3, product = 'Milan', signingKey = 'vcek', faults = {} } = options
  const reportedTcb = options.reportedTcb ?? defaultTcb
  const chipId = options.chipId ?? (signingKey === 'vlek' ? new Uint8Array(64) : pki.chipId(product))
  const cpuid = options.cpuid ?? cpuids[product]
  const firmware = [0x1d, 0x37, 0x01] // build, minor, major

  const report = new Uint8Array(REPORT_LENGTH)
  const view = new DataView(report.buffer)
  view.setUint32(0x000, version, true)
  view.setBigUint64(0x008, options.policy ?? 0x30000n, true)
  view.setUint32(0x030, options.vmpl ?? 0, true)
  view.setUint32(0x034, faults.wrongSignatureAlgorithm ? 2 : ECDSA_P384_SHA384, true)
  report.set(encodeTcb(reportedTcb, product), 0x038)
  // SMT and, since version 3, ECC and the completed alias check.
  view.setBigUint64(0x040, options.platformInfo ?? (version === 2 ? 0x01n : 0x25n), true)
  view.setUint32(0x048, signingKey === 'vlek' ? 1 << 2 : 0, true)
  if (faults.reservedByteSet) report[0x04c] = 1
  report.set(toReportData(options.reportData), 0x050)
  report.set(sized('measurement', options.measurement ?? measure('SNP launch measurement'), 48), 0x090)
  report.set(sized('hostData', options.hostData, 32), 0x0c0)
  report.set(derive(seed, 'amd report id', 32), 0x140)
  report.set(new Uint8Array(32).fill(0xff), 0x160)
  report.set(encodeTcb(reportedTcb, product), 0x180)
  if (version >= 3) report.set([cpuid.family, cpuid.model, cpuid.stepping], 0x188)
  report.set(sized('chipId', chipId, 64), 0x1a0)
  report.set(encodeTcb(options.committedTcb ?? reportedTcb, product), 0x1e0)
  report.set(firmware, 0x1e8) // current
  report.set(firmware, 0x1ec) // committed
  report.set(encodeTcb(options.launchTcb ?? reportedTcb, product), 0x1f0)
  if (version >= 5) {
    // LAUNCH_MIT_VECTOR and CURRENT_MIT_VECTOR.
    view.setBigUint64(0x1f8, 0x0bn, true)
    view.setBigUint64(0x200, 0x0bn, true)
  }

  const signerTcb = faults.wrongSigner ? { ...reportedTcb, microcode: reportedTcb.microcode ^ 1 } : reportedTcb
  const signature = pki
    .ekKey({ signingKey, product, tcb: signerTcb, chipId })
    .signRaw(report.subarray(0, SIGNED_LENGTH))
  report.set(signature.slice(0, 48).reverse(), 0x2a0) // r, little-endian in 72 bytes
  report.set(signature.slice(48).reverse(), 0x2e8) // s
  if (faults.signaturePaddingSet) report[0x2a0 + 71] = 1
  if (faults.tailByteSet) report[REPORT_LENGTH - 1] = 1
  if (faults.reportDataFlipped) report[0x050] = (report[0x050] ?? 0) ^ 1
  return report
}
