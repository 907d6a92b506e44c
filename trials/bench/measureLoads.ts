import { median, percentile } from '@countersign/testing/stack'
import { type Answered, applyLoad } from './applyLoad.ts'
import { prepareSignings } from './signer.ts'
import { QUOTE_MS } from './startStack.ts'
import type { LoadedVault } from './vaults.ts'

/** Who asks whom for signatures: with their own wallets, or each with a vault. An echo answers at once, whatever it is asked. */
export type Load = {
  url: string
  cookies: readonly string[]
  vaults?: readonly LoadedVault[] | undefined
  isEcho?: boolean
}

export type Figures = { rate: number; p50: number; p99: number }

/** More than any machine answers in a second. */
const MAX_PER_SECOND = 4_000
/** Requests that each connection has beyond that: some are answered before others. */
const SPARE_EACH = 4

/** Four slices each, in an order in which whatever changes slowly on the machine changes for all alike. */
export async function measureInTurns<const Loads extends readonly Load[]>(
  loads: Loads,
  connections: number,
  sliceMs: number,
): Promise<{ [Index in keyof Loads]: Figures }> {
  const measured = loads.map((load) => ({ load, slices: [] as Answered[] }))
  const back = measured.toReversed()
  for (const { load, slices } of [...measured, ...back, ...back, ...measured])
    slices.push(await prepareLoad(load, connections, sliceMs)())
  return measured.map(({ slices }) => toFigures(slices)) as { [Index in keyof Loads]: Figures }
}

export const measure = async (load: Load, connections: number, sliceMs: number): Promise<Figures> =>
  toFigures([await prepareLoad(load, connections, sliceMs)()])

/** What it answers applies the load; the requests are made before. */
export function prepareLoad(load: Load, connections: number, sliceMs: number): () => Promise<Answered> {
  const { url, cookies, vaults, isEcho = false } = load
  // Nobody is answered sooner than a quote is made.
  const most = isEcho ? 0 : Math.min((MAX_PER_SECOND * sliceMs) / 1000, (connections * sliceMs) / QUOTE_MS)
  const count = Math.ceil(most) + SPARE_EACH * connections
  const next = prepareSignings({ cookies, vaults, connections, count, mayRepeat: isEcho })
  return () => applyLoad({ url, connections, sliceMs, next })
}

function toFigures(slices: readonly Answered[]): Figures {
  const latencies = slices.flatMap((slice) => slice.latencies)
  const rate = slices.reduce((sum, slice) => sum + slice.rate, 0) / slices.length
  return { rate, p50: median(latencies), p99: percentile(latencies, 0.99) }
}
