import type { EvidenceMode } from '@countersign/protocol'

/** TDX evidence. */
export type Quote = {
  readonly quote: Uint8Array
  /** The measurements in the RTMRs, from the agent. Only replaying it against the quote proves it. */
  readonly eventLog?: string
}

/** SEV-SNP evidence. */
export type Report = {
  readonly report: Uint8Array
  /** The host's certificate table, for `parseCertTable`. The host may have none. */
  readonly certificates?: Uint8Array
}

/** The source of a TDX guest's quotes, one at a time. */
export type QuoteSource = {
  readonly mode: EvidenceMode
  getQuote(reportData: Uint8Array): Promise<Quote>
}

/** The source of a SEV-SNP guest's reports, one at a time. */
export type ReportSource = {
  readonly mode: EvidenceMode
  getReport(reportData: Uint8Array): Promise<Report>
}

/** Waits. */
export type Wait = (durationMs: number) => Promise<void>
