import { setImmediate, setTimeout as systemWait } from 'node:timers/promises'
import type { QuoteSource, Wait } from './ports.ts'
import { createQuoteSource } from './source.ts'

/** The duration of a quote on real TDX, so that a mock deployment batches requests like a real one. */
export const LATENCY_MS = 39

export type Awaitable<Value> = Value | Promise<Value>
export type WithReportData = { reportData: Uint8Array }

/** The part of the simulator that issues quotes: `createSimulator` in `@countersign/attestation/simulator`. */
export type QuoteSimulator<Parameters extends WithReportData> = {
  quote(parameters: Parameters): Awaitable<Uint8Array>
}

export type Timing = { latencyMs?: number; wait?: Wait }

export type SimulatedQuoteSourceParameters<Parameters extends WithReportData> = Timing & {
  simulator: QuoteSimulator<Parameters>
  /** All values of a quote except its report data. */
  quoteOptions?: Omit<Parameters, 'reportData'>
}

/**
 * Quotes from simulated hardware: validly signed, one at a time and as slow as real ones, under a root that no production verifier accepts.
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
      // Included in the latency, not added to it.
      const waited = wait(latencyMs)
      // Real hardware wouldn't use this thread. So callers with a finished quote continue first.
      await setImmediate()
      const quote = await simulator.quote({ ...quoteOptions, reportData } as Parameters)
      await waited
      return { quote }
    },
  })
}
