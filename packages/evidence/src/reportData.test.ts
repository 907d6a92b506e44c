import { describe, expect, test } from 'vitest'
import { codeOf, fakeQuote, fakeReport, fakeReportData } from './evidence.fake.ts'
import { assertQuoteBinds, assertReportBinds, copyReportData } from './reportData.ts'

const asked = fakeReportData()
const code = (action: () => void) => codeOf((async () => action())())

describe('report data', () => {
  test.each([0, 32, 63, 65, 128])('of %i bytes is refused', async (length) => {
    expect(await code(() => copyReportData(new Uint8Array(length)))).toBe('report_data_length')
  })

  test('that is not bytes is refused', async () => {
    expect(await code(() => copyReportData('0'.repeat(64) as unknown as Uint8Array))).toBe('report_data_length')
  })

  test('is copied, so a caller who reuses his buffer changes nothing', () => {
    const mine = fakeReportData()
    const copy = copyReportData(mine)
    mine.fill(0)
    expect(copy).toEqual(fakeReportData())
  })
})

describe('a quote', () => {
  test.each([4, 5] as const)('of version %i passes for its own report data', async (version) => {
    expect(await code(() => assertQuoteBinds(fakeQuote(asked, version), asked))).toBe('none')
  })

  test.each([4, 5] as const)('of version %i fails when any byte of its report data differs', async (version) => {
    const start = version === 4 ? 568 : 574
    for (let index = 0; index < 64; index++) {
      const quote = fakeQuote(asked, version)
      quote[start + index] = (quote[start + index] ?? 0) ^ 1
      expect(await code(() => assertQuoteBinds(quote, asked))).toBe('evidence_mismatch')
    }
  })

  test('is read through a view into a larger buffer', async () => {
    const buffer = new Uint8Array(6000)
    buffer.set(fakeQuote(asked), 100)
    expect(await code(() => assertQuoteBinds(buffer.subarray(100, 5100), asked))).toBe('none')
  })

  test.each([
    ['empty', new Uint8Array()],
    ['cut inside the header', fakeQuote(asked).slice(0, 47)],
    ['cut inside the report data, version 4', fakeQuote(asked, 4).slice(0, 631)],
    ['cut inside the report data, version 5', fakeQuote(asked, 5).slice(0, 637)],
    ['of version 3', edit(fakeQuote(asked), 0, 3)],
    ['of version 260', edit(fakeQuote(asked), 1, 1)],
    ['of an SGX enclave', edit(fakeQuote(asked), 4, 0)],
    ['of version 5 with an SGX body', edit(fakeQuote(asked, 5), 48, 1)],
  ])('%s is malformed', async (_name, quote) => {
    expect(await code(() => assertQuoteBinds(quote, asked))).toBe('evidence_malformed')
  })
})

describe('a report', () => {
  test('passes for its own report data', async () => {
    expect(await code(() => assertReportBinds(fakeReport(asked), asked))).toBe('none')
  })

  test.each([0, 31, 63])('fails when byte %i of its report data differs', async (index) => {
    const report = edit(fakeReport(asked), 0x50 + index, (asked[index] ?? 0) ^ 0x80)
    expect(await code(() => assertReportBinds(report, asked))).toBe('evidence_mismatch')
  })

  test.each([0, 1183, 1185])('of %i bytes is malformed', async (length) => {
    expect(await code(() => assertReportBinds(new Uint8Array(length), asked))).toBe('evidence_malformed')
  })
})

function edit(bytes: Uint8Array, offset: number, value: number) {
  bytes[offset] = value
  return bytes
}
