import { median } from '@countersign/testing/stack'
import { toFigure, toTable } from '../table.ts'
import { type Calm, describeCalm, repeatCalmly } from './repeatCalmly.ts'

/** Under what load, or of what size. */
type At = { value: number; of: string }

export type Row = {
  name: string
  at?: At
  value: number
  unit: string
  /** The figure divided by references of the same run, by what they are. */
  ratios: Readonly<Record<string, number>>
}

/** What a suite has measured. */
export type Report = {
  suite: string
  title: string
  /** What was measured on what, in a sentence or two. */
  setting: string
  rows: readonly Row[]
  notes?: readonly string[]
}

/** How a suite is run. */
export type Run = {
  /** Repeats in which all candidates take turns. */
  rounds: number
  /** Small sizes, to try a suite out: the figures mean little. */
  isQuick: boolean
  /** Evidence to measure on. */
  fixtures: string
  /** Another checkout, to measure along with this one. */
  against: string | undefined
  /** Of signing, only where processor time goes. */
  isBudget: boolean
  say(text: string): void
}

export type Suite = (run: Run) => Promise<Report | readonly Report[]>

export function toRow(name: string, value: number, unit: string, ratios: Row['ratios'] = {}): Row {
  return { name, value, unit, ratios }
}

export const withAt = (value: number, of: string, rows: readonly Row[]) =>
  rows.map((row): Row => ({ ...row, at: { value, of } }))

/** Repeats a measurement at each load. The rows are of medians over the repeats. */
export async function measureLoads<Repeat>(
  { rounds, isQuick, say }: Run,
  loads: { of: string; at: readonly number[]; name?: string },
  measure: (at: number, round: number) => Promise<Repeat>,
  toRows: (of: (pick: (repeat: Repeat) => number) => number, repeats: readonly Repeat[]) => readonly Row[],
): Promise<{ rows: Row[]; calms: Calm<unknown>[] }> {
  const rows: Row[] = []
  const calms: Calm<unknown>[] = []
  for (const at of loads.at) {
    say(`${at} ${loads.of}${loads.name ?? ''}`)
    const calm = await repeatCalmly({ rounds, isQuick }, (round) => measure(at, round))
    calms.push(calm)
    const found = toRows((pick) => median(calm.repeats.map(pick)), calm.repeats)
    for (const { name, ratios } of found) {
      for (const [to, value] of Object.entries(ratios)) say(`${name}: ${toFigure(value)} × ${to}`)
    }
    rows.push(...withAt(at, loads.of, found))
  }
  return { rows, calms }
}

export const describeRounds = ({ rounds }: Run, sliceMs: number, calms: readonly Calm<unknown>[]) =>
  `median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ${describeCalm(calms)}.`

/** What was measured, a table, and notes, in Markdown. */
export function toBody({ setting, rows, notes = [] }: Report): string {
  const hasLoads = rows.some(({ at }) => at !== undefined)
  const table = toTable({
    head: ['Measure', ...(hasLoads ? ['At'] : []), 'Value', 'Against'],
    rows: rows.map(({ name, at, value, unit, ratios }) => [
      name,
      ...(hasLoads ? [at === undefined ? '' : `${at.value.toLocaleString('en-GB')} ${at.of}`] : []),
      `${toFigure(value)} ${unit}`,
      Object.entries(ratios)
        .map(([to, ratio]) => `${toFigure(ratio)} × ${to}`)
        .join('; '),
    ]),
  })
  return [setting, '', table, ...notes.flatMap((note) => ['', note]), ''].join('\n')
}
