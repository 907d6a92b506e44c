import { type EvidenceMode, withinTimeLimit } from '@countersign/protocol'
import { EvidenceError, evidenceTimeout } from './errors.ts'
import { createOneAtATime } from './oneAtATime.ts'
import type { Quote, QuoteSource, Report, ReportSource } from './ports.ts'
import { assertQuoteBinds, assertReportBinds, copyReportData } from './reportData.ts'

/** Real quotes are 5 to 8 KiB; the kernel gave at most 32 KiB until it learned of DICE. */
export const MAX_QUOTE_LENGTH = 65_536
export const MAX_CERTIFICATES_LENGTH = 65_536

const DEFAULT_TIMEOUT_MS = 30_000

/** How one kind of evidence is asked for; the signal says that the caller has stopped waiting. */
type Ask<Evidence> = (reportData: Uint8Array, signal: AbortSignal) => Promise<Evidence>

/** What every source does around its own way of asking. */
export type SourceParameters<Evidence> = {
  mode: EvidenceMode
  ask: Ask<Evidence>
  /** For the whole call, its wait for the calls before it included. */
  timeoutMs?: number | undefined
}

export function createQuoteSource(parameters: SourceParameters<Quote>): QuoteSource {
  const get = createGet(parameters)
  return {
    mode: parameters.mode,
    async getQuote(reportData) {
      const asked = copyReportData(reportData)
      const evidence = await get(asked)
      assertAtMost(evidence.quote, MAX_QUOTE_LENGTH)
      assertQuoteBinds(evidence.quote, asked)
      return evidence
    },
  }
}

export function createReportSource(parameters: SourceParameters<Report>): ReportSource {
  const get = createGet(parameters)
  return {
    mode: parameters.mode,
    async getReport(reportData) {
      const asked = copyReportData(reportData)
      const evidence = await get(asked)
      if (evidence.certificates !== undefined) assertAtMost(evidence.certificates, MAX_CERTIFICATES_LENGTH)
      assertReportBinds(evidence.report, asked)
      return evidence
    },
  }
}

/**
 * The time limit is outside the queue: a caller is answered in time even behind a request that hangs. The turn itself
 * ends only when the request has, since a driver that is still at work must not be asked again.
 */
function createGet<Evidence>({ ask, timeoutMs = DEFAULT_TIMEOUT_MS }: SourceParameters<Evidence>) {
  const oneAtATime = createOneAtATime()
  return (reportData: Uint8Array) =>
    withinTimeLimit(
      timeoutMs,
      (signal) =>
        oneAtATime(async () => {
          signal.throwIfAborted()
          return ask(reportData, signal)
        }),
      { createError: () => evidenceTimeout(timeoutMs) },
    )
}

function assertAtMost(bytes: Uint8Array, length: number) {
  if (bytes.length > length) {
    throw new EvidenceError('evidence_too_large', 'more evidence than a guest gives', {
      details: `${bytes.length} of at most ${length} bytes`,
    })
  }
}
