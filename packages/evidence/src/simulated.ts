import { setImmediate, setTimeout as systemWait } from 'node:timers/promises'
import { toCertTable } from './certTable.ts'
import type { QuoteSource, ReportSource, Wait } from './ports.ts'
import { createQuoteSource, createReportSource } from './source.ts'

/** What a quote takes on real TDX, so that a mock deployment gathers requests into batches as a real one does. */
const LATENCY_MS = 39

const SIGNING_KEY_OFFSET = 0x48
const SIGNED_BY_VLEK = 1

type Awaitable<Value> = Value | Promise<Value>
type WithReportData = { reportData: Uint8Array }

/** The part of the simulator that issues quotes: `createSimulator` in `@countersign/attestation/simulator`. */
export type QuoteSimulator<Parameters extends WithReportData> = {
  quote(parameters: Parameters): Awaitable<Uint8Array>
}

/** The part of the simulator that issues reports, and the chain of the key that signs them. */
export type ReportSimulator<Parameters extends WithReportData, CertificateOptions> = {
  report(parameters: Parameters): Awaitable<Uint8Array>
  certificates(options?: CertificateOptions): Awaitable<{ ek: Uint8Array; ask: Uint8Array; ark: Uint8Array }>
}

type Timing = { latencyMs?: number; wait?: Wait }

export type SimulatedQuoteSourceParameters<Parameters extends WithReportData> = Timing & {
  simulator: QuoteSimulator<Parameters>
  /** Everything that a quote says beside its report data. */
  quoteOptions?: Omit<Parameters, 'reportData'>
}

export type SimulatedReportSourceParameters<Parameters extends WithReportData, CertificateOptions> = Timing & {
  simulator: ReportSimulator<Parameters, CertificateOptions>
  /** Everything that a report says beside its report data. */
  reportOptions?: Omit<Parameters, 'reportData'>
  /** Which key signs, where `reportOptions` name another than the usual one. */
  certificateOptions?: CertificateOptions
}

/**
 * Quotes from simulated silicon: really signed, one at a time and as slow as real ones, under a root that no production
 * verifier accepts.
 *
 * @example
 * const source = createSimulatedQuoteSource({ simulator: createSimulator({ seed, at }) })
 */
export function createSimulatedQuoteSource<Parameters extends WithReportData>(
  parameters: SimulatedQuoteSourceParameters<Parameters>,
): QuoteSource {
  const { simulator, quoteOptions, latencyMs = LATENCY_MS, wait = systemWait } = parameters
  return createQuoteSource({
    mode: 'mock',
    async ask(reportData) {
      // What the simulation itself takes is part of the latency, not on top of it.
      const waited = wait(latencyMs)
      // Silicon takes none of this thread's time. So those who have just got the quote before are answered first.
      await setImmediate()
      const quote = await simulator.quote({ ...quoteOptions, reportData } as Parameters)
      await waited
      return { quote }
    },
  })
}

/** Reports from simulated silicon, with their certificates in the same table in which a host gives them. */
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
