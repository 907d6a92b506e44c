import { createHash } from 'node:crypto'
import { median } from '@countersign/testing/stack'
import { toFigure, toTable } from '../table.ts'
import { type Figures, type Load, measureInTurns } from './load.ts'

export type Row = {
  name: string
  /** Under what load, or of what size. */
  at?: string
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

export const toRow = (name: string, value: number, unit: string, ratios: Row['ratios'] = {}): Row => ({
  name,
  value,
  unit,
  ratios,
})

export const withAt = (at: string, rows: readonly Row[]) => rows.map((row): Row => ({ ...row, at }))

/** What is measured in turns with others. The first of them is what the others are compared with. */
export type Lane = {
  /** Behind the name of a figure; empty for the first. */
  name: string
  load: Load
  /** The first lane's figures, or only its rate, are given as multiples of this one's, not the other way round. */
  reference?: 'all' | 'rate'
  /** What it is compared with, if that is not the first lane. */
  comparedWith?: string
  /** More callers would only wait longer. */
  maxConnections?: number
}

const MEASURES = [
  ['rate', '/s'],
  ['p50', 'ms'],
  ['p99', 'ms'],
] as const satisfies readonly (readonly [keyof Figures, string])[]

/**
 * All lanes at each number of connections, in turns: the medians over repeats of the figures, and of the ratios within each repeat.
 * `what` is what a rate counts, `of` what follows the other figures, `first` what the first lane is called where others are compared
 * with it.
 */
export async function compareLanes(
  { rounds, isQuick, say }: Pick<Run, 'rounds' | 'isQuick' | 'say'>,
  lanes: readonly Lane[],
  how: {
    what: string
    of?: string
    first: string
    connections: readonly number[]
    sliceMs: number
    warmSlices: number
  },
): Promise<{ rows: Row[]; calms: Calm<unknown>[] }> {
  const { what, of: suffix = '', first, connections, sliceMs, warmSlices } = how
  const measure = async (at: number, ms: number) => {
    const groups = Map.groupBy(lanes, ({ maxConnections = at }) => Math.min(at, maxConnections))
    const figures = new Map<Lane, Figures>()
    for (const [count, group] of groups) {
      const measured = await measureInTurns(
        group.map(({ load }) => load),
        count,
        ms,
      )
      for (const [index, lane] of group.entries()) figures.set(lane, measured[index] as Figures)
    }
    return lanes.map((lane) => figures.get(lane) as Figures)
  }
  say('warming up')
  for (let slice = 0; slice < (isQuick ? 1 : warmSlices); slice++) await measure(Math.max(...connections), sliceMs / 2)
  const rows: Row[] = []
  const calms: Calm<unknown>[] = []
  for (const at of connections) {
    say(`${at} connections`)
    const calm = await repeatCalmly({ rounds, isQuick }, () => measure(at, sliceMs))
    calms.push(calm)
    const of = (pick: (repeat: readonly Figures[]) => number | undefined) =>
      median(calm.repeats.map((repeat) => pick(repeat) ?? Number.NaN))
    const found = MEASURES.flatMap(([measured, unit]) =>
      lanes.map(({ name, reference, comparedWith = '' }, place) => {
        const toRatio = (top: number, bottom: number) =>
          of((repeat) => (repeat[top]?.[measured] ?? Number.NaN) / (repeat[bottom]?.[measured] ?? Number.NaN))
        const references = [...lanes.entries()].filter(
          ([, lane]) => lane.reference === 'all' || (lane.reference === 'rate' && measured === 'rate'),
        )
        const ratios: Row['ratios'] =
          place === 0
            ? Object.fromEntries(references.map(([other, lane]) => [lane.name, toRatio(0, other)]))
            : reference
              ? {}
              : {
                  [comparedWith || first]: toRatio(
                    place,
                    lanes.findIndex((lane) => lane.name === comparedWith),
                  ),
                }
        const figure = measured === 'rate' ? what : `${measured}${suffix}`
        return toRow(
          name === '' ? figure : `${figure}, ${name}`,
          of((repeat) => repeat[place]?.[measured]),
          unit,
          ratios,
        )
      }),
    )
    for (const { name, ratios } of found)
      for (const [to, value] of Object.entries(ratios)) say(`${name}: ${toFigure(value)} × ${to}`)
    rows.push(...withAt(`${at.toLocaleString('en-GB')} connections`, found))
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
    rows: rows.map(({ name, at = '', value, unit, ratios }) => [
      name,
      ...(hasLoads ? [at] : []),
      `${toFigure(value)} ${unit}`,
      Object.entries(ratios)
        .map(([to, ratio]) => `${toFigure(ratio)} × ${to}`)
        .join('; '),
    ]),
  })
  return [setting, '', table, ...notes.flatMap((note) => ['', note]), ''].join('\n')
}

/** A repeat is disturbed if a fixed piece of work takes longer than this times the best, before or after it. */
const MAX_DISTURBANCE = 1.3
/** On a machine that is never calm, so many repeats for each round are enough; where the figures do not matter, one. */
const MAX_REPEATS = 2

/** `discarded` were made and not used; `disturbed` were used all the same, because there were no better ones. */
export type Calm<Result> = { repeats: Result[]; discarded: number; disturbed: number }

/** Repeats a measurement until as many as asked for were not disturbed by other work, or gives up and takes the calmest. */
export async function repeatCalmly<Result>(
  { rounds, isQuick }: { rounds: number; isQuick: boolean },
  measure: (round: number) => Promise<Result>,
): Promise<Calm<Result>> {
  const limit = (isQuick ? 1 : MAX_REPEATS) * rounds
  const made: { result: Result; took: number }[] = []
  let best = calibrate()
  const isCalm = ({ took }: { took: number }) => took <= MAX_DISTURBANCE * best
  while (made.length < limit && made.filter(isCalm).length < rounds) {
    const before = calibrate()
    const result = await measure(made.length)
    const after = calibrate()
    best = Math.min(best, before, after)
    made.push({ result, took: Math.max(before, after) })
  }
  const used = made.toSorted((left, right) => left.took - right.took).slice(0, rounds)
  return {
    repeats: used.map(({ result }) => result),
    discarded: made.length - used.length,
    disturbed: used.filter((one) => !isCalm(one)).length,
  }
}

/** For the setting of a report. */
function describeCalm(calms: readonly Omit<Calm<unknown>, 'repeats'>[]): string {
  const sum = (name: 'discarded' | 'disturbed') => calms.reduce((all, calm) => all + calm[name], 0)
  const used =
    sum('disturbed') === 0 ? '' : `; ${sum('disturbed')} of those that count were disturbed by other work too`
  return `${sum('discarded')} disturbed ones discarded${used}`
}

/** Milliseconds for a fixed piece of work; the best of three, since a collection of garbage is no disturbance. */
function calibrate(): number {
  return Math.min(work(), work(), work())
}

function work(): number {
  const start = performance.now()
  let value = Buffer.alloc(64)
  for (let index = 0; index < 20_000; index++) value = createHash('sha512').update(value).digest()
  return performance.now() - start
}
