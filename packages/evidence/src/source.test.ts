import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { codeOf, createGate, fakeQuote, fakeReport, fakeReportData } from '../test/evidence.ts'
import {
  assertQuoteBinds,
  assertReportBinds,
  copyReportData,
  createOneAtATime,
  createQuoteSource,
  createReportSource,
} from './source.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('makes no request for report data of a wrong length', async () => {
  let asked = 0
  const source = createQuoteSource({
    mode: 'mock',
    ask: async (reportData) => {
      asked++
      return { quote: fakeQuote(reportData) }
    },
  })
  expect(await codeOf(source.getQuote(new Uint8Array(63)))).toBe('report_data_length')
  expect(asked).toBe(0)
})

test('sends one request at a time, in the order of the calls, and a failing one does not block the next', async () => {
  let inFlight = 0
  const order: number[] = []
  const source = createQuoteSource({
    mode: 'mock',
    ask: async (reportData) => {
      expect(++inFlight).toBe(1)
      order.push(reportData[0] ?? -1)
      await new Promise(setImmediate)
      inFlight--
      if (reportData[0] === 2) throw new Error('bad')
      return { quote: fakeQuote(reportData) }
    },
  })
  const results = await Promise.allSettled([1, 2, 3, 4].map((seed) => source.getQuote(fakeReportData(seed))))
  expect(order).toEqual([1, 2, 3, 4])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
})

test('uses the original bytes even if the caller changes them while waiting', async () => {
  const gate = createGate()
  const source = createQuoteSource({
    mode: 'mock',
    ask: async (reportData) => {
      await gate.opened
      return { quote: fakeQuote(reportData) }
    },
  })
  const mine = fakeReportData()
  const asking = source.getQuote(mine)
  mine.fill(0)
  gate.open()
  expect((await asking).quote).toEqual(fakeQuote(fakeReportData()))
})

test('a caller behind a hanging request gets a timeout in time, and that request is never sent', async () => {
  const gate = createGate()
  const asked: number[] = []
  const source = createQuoteSource({
    mode: 'mock',
    timeoutMs: 1000,
    ask: async (reportData) => {
      asked.push(reportData[0] ?? -1)
      if (reportData[0] === 1) await gate.opened
      return { quote: fakeQuote(reportData) }
    },
  })
  const codes = [1, 2].map((seed) => codeOf(source.getQuote(fakeReportData(seed))))
  await vi.advanceTimersByTimeAsync(1000)
  expect(await Promise.all(codes)).toEqual(['evidence_timeout', 'evidence_timeout'])
  gate.open()
  await source.getQuote(fakeReportData(3))
  expect(asked).toEqual([1, 3])
})

test('rejects a quote for other report data', async () => {
  const source = createQuoteSource({ mode: 'mock', ask: async () => ({ quote: fakeQuote(fakeReportData(9)) }) })
  expect(await codeOf(source.getQuote(fakeReportData(1)))).toBe('evidence_mismatch')
})

test('rejects a report for other report data', async () => {
  const source = createReportSource({ mode: 'mock', ask: async () => ({ report: fakeReport(fakeReportData(9)) }) })
  expect(await codeOf(source.getReport(fakeReportData(1)))).toBe('evidence_mismatch')
})

test('accepts a quote of 64 KiB, and rejects one byte more', async () => {
  const quoteOf = (length: number) => (reportData: Uint8Array) => {
    const quote = new Uint8Array(length)
    quote.set(fakeQuote(reportData))
    return quote
  }
  const ask = (make: (reportData: Uint8Array) => Uint8Array) =>
    createQuoteSource({ mode: 'mock', ask: async (reportData) => ({ quote: make(reportData) }) })
  expect(await codeOf(ask(quoteOf(65_536)).getQuote(fakeReportData()))).toBe('none')
  expect(await codeOf(ask(quoteOf(65_537)).getQuote(fakeReportData()))).toBe('evidence_too_large')
})

test('accepts certificates of 64 KiB, and rejects one byte more', async () => {
  const ask = (length: number) =>
    createReportSource({
      mode: 'mock',
      ask: async (reportData) => ({ report: fakeReport(reportData), certificates: new Uint8Array(length) }),
    })
  expect(await codeOf(ask(65_536).getReport(fakeReportData()))).toBe('none')
  expect(await codeOf(ask(65_537).getReport(fakeReportData()))).toBe('evidence_too_large')
})

test('a call may take 30 seconds by default', async () => {
  const source = createQuoteSource({ mode: 'mock', ask: () => new Promise(() => {}) })
  let settled = false
  const code = codeOf(source.getQuote(fakeReportData())).finally(() => {
    settled = true
  })
  await vi.advanceTimersByTimeAsync(29_999)
  expect(settled).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await code).toBe('evidence_timeout')
})

test('tasks run in the order of the calls, each with its own result', async () => {
  const oneAtATime = createOneAtATime()
  const order: number[] = []
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((number) =>
      oneAtATime(async () => {
        order.push(number)
        return number * 10
      }),
    ),
  )
  expect(order).toEqual([0, 1, 2, 3, 4])
  expect(results).toEqual([0, 10, 20, 30, 40])
})

test('two queues do not wait for each other', async () => {
  const gate = createGate()
  const stuck = createOneAtATime()(() => gate.opened)
  await expect(createOneAtATime()(async () => 'free')).resolves.toBe('free')
  gate.open()
  await stuck
})

const asked = fakeReportData()
const code = (action: () => void) => codeOf((async () => action())())

describe('report data', () => {
  test.each([0, 32, 63, 65, 128])('of %i bytes is rejected', async (length) => {
    expect(await code(() => copyReportData(new Uint8Array(length)))).toBe('report_data_length')
  })

  test('that is not bytes is rejected', async () => {
    expect(await code(() => copyReportData('0'.repeat(64) as unknown as Uint8Array))).toBe('report_data_length')
  })

  test('is copied, so a caller can reuse the buffer', () => {
    const mine = fakeReportData()
    const copy = copyReportData(mine)
    mine.fill(0)
    expect(copy).toEqual(fakeReportData())
  })
})

describe('a quote', () => {
  test.each([4, 5] as const)('of version %i is accepted for its own report data', async (version) => {
    expect(await code(() => assertQuoteBinds(fakeQuote(asked, version), asked))).toBe('none')
  })

  test.each([4, 5] as const)('of version %i fails if any byte of its report data differs', async (version) => {
    const start = version === 4 ? 568 : 574
    for (let index = 0; index < 64; index++) {
      const quote = fakeQuote(asked, version)
      quote[start + index] = (quote[start + index] ?? 0) ^ 1
      expect(await code(() => assertQuoteBinds(quote, asked))).toBe('evidence_mismatch')
    }
  })

  test('can be a view into a larger buffer', async () => {
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
  test('is accepted for its own report data', async () => {
    expect(await code(() => assertReportBinds(fakeReport(asked), asked))).toBe('none')
  })

  test.each([0, 31, 63])('fails if byte %i of its report data differs', async (index) => {
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
