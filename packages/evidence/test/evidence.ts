import { EvidenceError } from '../src/errors.ts'

/** 64 bytes that differ by `seed`. */
export function fakeReportData(seed = 1): Uint8Array {
  return Uint8Array.from({ length: 64 }, (_, index) => (index * 7 + seed) & 0xff)
}

/** A quote with only the parts that this package reads, unsigned. */
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

/** A report with only the parts that this package reads, unsigned. */
export function fakeReport(reportData: Uint8Array): Uint8Array {
  const report = new Uint8Array(1184)
  report[0] = 2
  report.set(reportData, 0x50)
  return report
}

/** The error code of a rejected promise. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
    return 'none'
  } catch (error) {
    return error instanceof EvidenceError ? error.code : error
  }
}

/** A promise that a test resolves or rejects. */
export function createGate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
