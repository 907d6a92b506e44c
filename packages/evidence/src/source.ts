import { SNP_REPORT_BYTES } from '@countersign/attestation/core'
import type { EvidenceMode } from '@countersign/protocol'
import { equalBytes, withinTimeLimit } from '@countersign/protocol/core'
import { EvidenceError, evidenceTimeout } from './errors.ts'
import type { Quote, QuoteSource, Report, ReportSource } from './ports.ts'

/** Real quotes are 5 to 8 KiB. Kernels before DICE support returned at most 32 KiB. */
export const MAX_QUOTE_LENGTH = 65_536
export const MAX_CERTIFICATES_LENGTH = 65_536

const DEFAULT_TIMEOUT_MS = 30_000

/** Requests one kind of evidence. The signal aborts when the caller stops waiting. */
type Ask<Evidence> = (reportData: Uint8Array, signal: AbortSignal) => Promise<Evidence>

/** The common part of all sources. */
export type SourceParameters<Evidence> = {
  mode: EvidenceMode
  ask: Ask<Evidence>
  /** For the whole call, including the time in the queue. */
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
 * The time limit includes the queue, so a caller gets an error in time even behind a hanging request. The turn itself ends only with the
 * request, because a busy driver must not get another one.
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

/**
 * Returns a function that runs tasks one after the other, in the order of the calls. A failing task affects only its own caller.
 *
 * @example
 * const oneAtATime = createOneAtATime()
 * const [first, second] = await Promise.all([oneAtATime(readQuote), oneAtATime(readQuote)])
 */
export function createOneAtATime(): <Result>(task: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task)
    last = result.catch(() => undefined)
    return result
  }
}

const REPORT_DATA_LENGTH = 64

const TDX_TEE_TYPE = 0x81
/** TD report body 1.0 and 1.5; both carry the report data at the same offset. */
const TD_BODY_TYPES: readonly number[] = [2, 3]
const HEADER_LENGTH = 48
const BODY_DESCRIPTOR_LENGTH = 6
const REPORT_DATA_IN_BODY = 520
/** The size of a TD 1.0 body, the shortest. */
const BODY_LENGTH = 584

const REPORT_DATA_IN_REPORT = 0x50

/** Copies the report data, because the caller may change the bytes while the request is in the queue. */
export function copyReportData(reportData: Uint8Array): Uint8Array {
  if (!(reportData instanceof Uint8Array) || reportData.length !== REPORT_DATA_LENGTH) {
    throw new EvidenceError('report_data_length', 'report data must be 64 bytes')
  }
  return Uint8Array.from(reportData)
}

/**
 * Checks that a quote is for the requested report data. It doesn't verify the quote's origin. It prevents storing a response to another
 * caller
 * or an earlier request.
 *
 * Intel TDX DCAP Quoting Library API, "Quote Format": version (u16) at 0, TEE type (u32) at 4, the TD report body at 48;
 * in version 5 a body type (u16) and a body size (u32) come before it. Report data at 520 in the body.
 */
export function assertQuoteBinds(quote: Uint8Array, reportData: Uint8Array): void {
  if (quote.length < HEADER_LENGTH + BODY_DESCRIPTOR_LENGTH) throw notAQuote()
  const view = new DataView(quote.buffer, quote.byteOffset, quote.byteLength)
  if (view.getUint32(4, true) !== TDX_TEE_TYPE) throw notAQuote()
  const version = view.getUint16(0, true)
  let body = HEADER_LENGTH
  if (version === 5) {
    if (!TD_BODY_TYPES.includes(view.getUint16(HEADER_LENGTH, true))) throw notAQuote()
    body += BODY_DESCRIPTOR_LENGTH
  } else if (version !== 4) {
    throw notAQuote()
  }
  if (quote.length < body + BODY_LENGTH) throw notAQuote()
  assertSame(quote, body + REPORT_DATA_IN_BODY, reportData)
}

/** Checks that a report is for the requested report data: SEV-SNP ABI, table "ATTESTATION_REPORT", offset 50h. */
export function assertReportBinds(report: Uint8Array, reportData: Uint8Array): void {
  if (report.length !== SNP_REPORT_BYTES) {
    throw new EvidenceError('evidence_malformed', 'not a SEV-SNP report', { details: `${report.length} bytes` })
  }
  assertSame(report, REPORT_DATA_IN_REPORT, reportData)
}

function assertSame(evidence: Uint8Array, offset: number, reportData: Uint8Array) {
  if (!equalBytes(evidence.subarray(offset, offset + REPORT_DATA_LENGTH), reportData)) {
    throw new EvidenceError('evidence_mismatch', 'evidence is for other report data')
  }
}

function notAQuote() {
  return new EvidenceError('evidence_malformed', 'not a TDX quote of version 4 or 5')
}
