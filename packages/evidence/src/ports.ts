import type { EvidenceMode } from '@countersign/protocol'

/** TDX evidence. */
export type Quote = {
  readonly quote: Uint8Array
  /** What was measured into the RTMRs, as the agent gives it; not covered by the quote until it is replayed. */
  readonly eventLog?: string
}

/** SEV-SNP evidence. */
export type Report = {
  readonly report: Uint8Array
  /** The certificate table as the host gave it, for `parseCertTable`; the host may give none. */
  readonly certificates?: Uint8Array
}

/** Where a TDX guest gets its quotes, one at a time. */
export type QuoteSource = {
  readonly mode: EvidenceMode
  getQuote(reportData: Uint8Array): Promise<Quote>
}

/** Where a SEV-SNP guest gets its reports, one at a time. */
export type ReportSource = {
  readonly mode: EvidenceMode
  getReport(reportData: Uint8Array): Promise<Report>
}

/** Lets time pass. */
export type Wait = (durationMs: number) => Promise<void>
