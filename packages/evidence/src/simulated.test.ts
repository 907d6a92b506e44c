import { X509Certificate } from 'node:crypto'
import { createSimulator } from '@countersign/attestation/simulator'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { codeOf, fakeQuote, fakeReport, fakeReportData } from '../test/evidence.ts'
import { parseCertTable } from './certTable.ts'
import { createSimulatedQuoteSource } from './simulated.ts'
import { createSimulatedReportSource } from './simulatedReports.ts'

type Options = { reportData: Uint8Array; label?: string }

const certificates = { ek: Uint8Array.of(1), ask: Uint8Array.of(2), ark: Uint8Array.of(3) }

function createFakeSimulator(signingKey = 0) {
  const labels: (string | undefined)[] = []
  return {
    labels,
    quote({ reportData, label }: Options) {
      labels.push(label)
      return fakeQuote(reportData)
    },
    async report({ reportData, label }: Options) {
      labels.push(label)
      const report = fakeReport(reportData)
      report[0x48] = signingKey << 2
      return report
    },
    certificates: (_options?: { chip?: number }) => certificates,
  }
}

const noWait = async () => {}

describe('simulated quotes', () => {
  test('are marked as mock and carry the report data', async () => {
    const source = createSimulatedQuoteSource({ simulator: createFakeSimulator(), wait: noWait })
    expect(source.mode).toBe('mock')
    expect(await source.getQuote(fakeReportData())).toEqual({ quote: fakeQuote(fakeReportData()) })
  })

  test('take 39 ms each by default, one after the other', async () => {
    let waiting = 0
    const waits: number[] = []
    const wait = async (durationMs: number) => {
      expect(++waiting).toBe(1)
      waits.push(durationMs)
      await new Promise(setImmediate)
      waiting--
    }
    const simulator = createFakeSimulator()
    const usual = createSimulatedQuoteSource({ simulator, wait })
    await Promise.all([1, 2, 3].map((seed) => usual.getQuote(fakeReportData(seed))))
    await createSimulatedQuoteSource({ simulator, wait, latencyMs: 1000 }).getQuote(fakeReportData())
    expect(waits).toEqual([39, 39, 39, 1000])
  })

  test('take the options of the simulator, and its types', async () => {
    const simulator = createFakeSimulator()
    await createSimulatedQuoteSource({ simulator, wait: noWait, quoteOptions: { label: 'debug' } }).getQuote(
      fakeReportData(),
    )
    expect(simulator.labels).toEqual(['debug'])
    type Parameters = NonNullable<Parameters_<typeof createSimulatedQuoteSource<Options>>['quoteOptions']>
    expectTypeOf<Parameters>().toEqualTypeOf<{ label?: string }>()
  })

  test('that fail do not block the next', async () => {
    const simulator = createFakeSimulator()
    const quote = simulator.quote
    let left = 1
    simulator.quote = (options) => {
      if (left-- > 0) throw new Error('bad')
      return quote(options)
    }
    const source = createSimulatedQuoteSource({ simulator, wait: noWait })
    const [bad, good] = await Promise.allSettled([1, 2].map((seed) => source.getQuote(fakeReportData(seed))))
    expect([bad?.status, good?.status]).toEqual(['rejected', 'fulfilled'])
  })

  test('for report data of a wrong length are rejected at once', async () => {
    let waits = 0
    const wait = async () => void waits++
    const source = createSimulatedQuoteSource({ simulator: createFakeSimulator(), wait })
    expect(await codeOf(source.getQuote(new Uint8Array()))).toBe('report_data_length')
    expect(waits).toBe(0)
  })

  test('for other report data are rejected like real ones', async () => {
    const source = createSimulatedQuoteSource({
      simulator: { quote: (_: Options) => fakeQuote(fakeReportData(9)) },
      wait: noWait,
    })
    expect(await codeOf(source.getQuote(fakeReportData(1)))).toBe('evidence_mismatch')
  })
})

describe('simulated reports', () => {
  test('are marked as mock and carry the report data', async () => {
    const source = createSimulatedReportSource({ simulator: createFakeSimulator(), wait: noWait })
    expect(source.mode).toBe('mock')
    expect((await source.getReport(fakeReportData())).report).toEqual(fakeReport(fakeReportData()))
  })

  test('have their chain in a host’s table, for the signing key', async () => {
    const chainOf = async (signingKey: number) => {
      const source = createSimulatedReportSource({ simulator: createFakeSimulator(signingKey), wait: noWait })
      const { certificates: table } = await source.getReport(fakeReportData())
      return parseCertTable(table ?? new Uint8Array())
    }
    const { ek, ask, ark } = certificates
    expect(await chainOf(0)).toEqual({ vcek: ek, ask, ark })
    expect(await chainOf(1)).toEqual({ vlek: ek, ask, ark })
  })

  test('take the options of the simulator', async () => {
    const simulator = createFakeSimulator()
    const source = createSimulatedReportSource({ simulator, wait: noWait, reportOptions: { label: 'vmpl 1' } })
    await source.getReport(fakeReportData())
    expect(simulator.labels).toEqual(['vmpl 1'])
  })
})

describe('the simulator of @countersign/attestation', () => {
  const simulator = createSimulator({ at: new Date('2026-01-15T00:00:00Z') })

  test.each([4, 5] as const)('returns quotes of version %i that are accepted like real ones', async (version) => {
    const source = createSimulatedQuoteSource({ simulator, wait: noWait, quoteOptions: { version } })
    const { quote } = await source.getQuote(fakeReportData())
    expect(quote[0]).toBe(version)
    expect(quote).toEqual(simulator.quote({ version, reportData: fakeReportData() }))
  })

  test.each(['vcek', 'vlek'] as const)('returns reports with the chain of the %s that signed', async (signingKey) => {
    const options = { reportOptions: { signingKey }, certificateOptions: { signingKey } }
    const source = createSimulatedReportSource({ simulator, wait: noWait, ...options })
    const { certificates: table = new Uint8Array() } = await source.getReport(fakeReportData())
    const { [signingKey]: ek, ask, ark, ...rest } = parseCertTable(table)
    expect(rest).toEqual({})
    const [ekCertificate, askCertificate, arkCertificate] = [ek, ask, ark].map((der) => new X509Certificate(der ?? ''))
    expect(ekCertificate?.issuer).toBe(askCertificate?.subject)
    expect(askCertificate?.issuer).toBe(arkCertificate?.subject)
  })
})

type Parameters_<Callable extends (...parameters: never[]) => unknown> = Parameters<Callable>[0]
