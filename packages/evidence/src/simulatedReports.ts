import { setTimeout as systemWait } from 'node:timers/promises'
import { toCertTable } from './certTable.ts'
import type { ReportSource } from './ports.ts'
import { type Awaitable, LATENCY_MS, type Timing, type WithReportData } from './simulated.ts'
import { createReportSource } from './source.ts'

const SIGNING_KEY_OFFSET = 0x48
const SIGNED_BY_VLEK = 1

/** The part of the simulator that issues reports and returns the certificate chain of the key that signs them. */
export type ReportSimulator<Parameters extends WithReportData, CertificateOptions> = {
  report(parameters: Parameters): Awaitable<Uint8Array>
  certificates(options?: CertificateOptions): Awaitable<{ ek: Uint8Array; ask: Uint8Array; ark: Uint8Array }>
}

export type SimulatedReportSourceParameters<Parameters extends WithReportData, CertificateOptions> = Timing & {
  simulator: ReportSimulator<Parameters, CertificateOptions>
  /** All fields of the report except its report data. */
  reportOptions?: Omit<Parameters, 'reportData'>
  /** Selects the signing key, if `reportOptions` select another than the default. */
  certificateOptions?: CertificateOptions
}

/** Issues reports from simulated silicon. Their certificates come in the same table format that real hosts use. */
export function createSimulatedReportSource<Parameters extends WithReportData, CertificateOptions>(
  parameters: SimulatedReportSourceParameters<Parameters, CertificateOptions>,
): ReportSource {
  const { simulator, reportOptions, certificateOptions, latencyMs = LATENCY_MS, wait = systemWait } = parameters
  return createReportSource({
    mode: 'mock',
    async ask(reportData) {
      await wait(latencyMs)
      const report = await simulator.report({ ...reportOptions, reportData } as Parameters)
      const { ek, ask, ark } = await simulator.certificates(certificateOptions)
      return {
        report,
        certificates: toCertTable({ ...(isSignedByVlek(report) ? { vlek: ek } : { vcek: ek }), ask, ark }),
      }
    },
  })
}

/** SEV-SNP ABI, table "ATTESTATION_REPORT": SIGNING_KEY is bits 4:2 at offset 48h. */
function isSignedByVlek(report: Uint8Array) {
  return (((report[SIGNING_KEY_OFFSET] ?? 0) >> 2) & 7) === SIGNED_BY_VLEK
}
