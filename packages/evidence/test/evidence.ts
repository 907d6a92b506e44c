import { EvidenceError } from '../src/errors.ts'

/** 64 bytes that differ by `seed`. */
export function fakeReportData(seed = 1): Uint8Array {
  return Uint8Array.from({ length: 64 }, (_, index) => (index * 7 + seed) & 0xff)
}

/** The shape of a quote as far as this package looks into it, unsigned. */
export function fakeQuote(reportData: Uint8Array, version: 4 | 5 = 4): Uint8Array {
  const quote = new Uint8Array(5000)
  const view = new DataView(quote.buffer)
  view.setUint16(0, version, true)
  view.setUint32(4, 0x81, true)
  if (version === 5) {
    view.setUint16(48, 3, true)
    view.setUint32(50, 648, true)
  }
  quote.set(reportData, version === 4 ? 568 : 574)
  return quote
}

/** The shape of a report as far as this package looks into it, unsigned. */
export function fakeReport(reportData: Uint8Array): Uint8Array {
  const report = new Uint8Array(1184)
  report[0] = 2
  report.set(reportData, 0x50)
  return report
}

/** The code with which a promise fails, for tests that assert on codes and not on prose. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
    return 'none'
  } catch (error) {
    return error instanceof EvidenceError ? error.code : error
  }
}

/** A promise that a test settles by hand. */
export function createGate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
