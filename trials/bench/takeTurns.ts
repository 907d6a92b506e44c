import { median } from '@countersign/testing/stack'

export type Candidate = { name: string; run: () => unknown }

export type Measurement = { name: string; medianMs: number }

/**
 * Measures candidates in turns within one run, so that whatever else the machine does disturbs all of them alike, and
 * gives the median over rounds of the time per call of each.
 */
export async function takeTurns(candidates: Candidate[], rounds: number, sliceMs = 150): Promise<Measurement[]> {
  const samples = new Map(candidates.map(({ name }) => [name, [] as number[]]))
  for (const { run } of candidates) for (let index = 0; index < 20; index++) await run()
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of candidates) {
      let calls = 0
      const start = performance.now()
      while (performance.now() - start < sliceMs) {
        await run()
        calls += 1
      }
      samples.get(name)?.push((performance.now() - start) / calls)
    }
  }
  return candidates.map(({ name }) => ({ name, medianMs: median(samples.get(name) ?? []) }))
}
