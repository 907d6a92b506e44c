import { median, percentile } from '@countersign/testing/stack'
import { type Table, toFigure } from '../table.ts'
import { WrongArgumentError } from '../trial.ts'
import { type Load, loadOnce } from './load.ts'

/** Values by column, one for each turn. Index n is the same turn in all rows. */
export type Row = { name: string; cells: Readonly<Record<string, readonly number[]>> }

export type Report = {
  suite: string
  /** The measured values and their conditions, in a sentence or two. */
  setting: string
  /** Columns of the table. Rows may have more. */
  columns: readonly string[]
  rows: readonly Row[]
  /** Pairs of row names: the first is divided by the second, turn by turn. */
  ratios?: readonly (readonly [string, string])[]
}

export type Run = {
  /** Each has `TURNS` turns of all lanes. */
  rounds: number
  /** Small sizes for a trial run. The figures mean little. */
  isQuick: boolean
  /** Folder of evidence to measure with. */
  fixtures: string
  /** Folder of another checkout to compare with. */
  against: string | undefined
  /** Numbers of connections for signing. */
  connections: readonly number[]
  /** Runs only the signing lanes with this text in their names. */
  lanes: string
  say(text: string): void
}

export type Suite = (run: Run) => Promise<readonly Report[]>

export type Lane = {
  name: string
  load: Load
  /**
   * Limits the measurement to these numbers of connections. Larger numbers repeat the figures of the largest, because more callers would only
   * wait longer.
   */
  connections?: readonly number[]
  /** Counters that only grow, read around each slice at the highest number of connections and divided by its answers. */
  count?(): Promise<Readonly<Record<string, number>>>
}

const TURNS = 4

/**
 * Measures all lanes at each number of connections, in turns, back and forth, so that slow changes of the machine affect all alike. Columns:
 * `@64` for answers per second at 64 connections, `p50@64` and `p99@64` in milliseconds, and the lane's counters.
 */
export async function measureLanes(
  { rounds, isQuick, say }: Pick<Run, 'rounds' | 'isQuick' | 'say'>,
  lanes: readonly Lane[],
  { connections: all, sliceMs, warmSlices }: { connections: readonly number[]; sliceMs: number; warmSlices: number },
): Promise<Row[]> {
  const rows = lanes.map((lane) => ({ lane, name: lane.name, cells: {} as Record<string, number[]> }))
  const most = Math.max(...all)
  const take = async ({ lane, cells }: (typeof rows)[number], connections: number) => {
    const { load, count } = connections === most ? lane : { ...lane, count: undefined }
    const before = await count?.()
    const { rate, latencies, count: answers } = await loadOnce(load, connections, sliceMs)
    const after = Object.entries((await count?.()) ?? {})
    const found = {
      [`@${connections}`]: rate,
      [`p50@${connections}`]: median(latencies),
      [`p99@${connections}`]: percentile(latencies, 0.99),
      ...Object.fromEntries(after.map(([name, value]) => [name, (value - (before?.[name] ?? 0)) / answers])),
    }
    for (const [name, value] of Object.entries(found)) cells[name] = [...(cells[name] ?? []), value]
  }
  say('warming up')
  for (let slice = 0; slice < (isQuick ? 1 : warmSlices); slice++) {
    for (const { lane } of rows) await loadOnce(lane.load, Math.max(...(lane.connections ?? all)), sliceMs)
  }
  for (const connections of all) {
    say(`${connections} connections`)
    const measured = rows.filter(({ lane }) => lane.connections?.includes(connections) ?? true)
    for (let turn = 0; turn < (isQuick ? 1 : TURNS * rounds); turn++) {
      for (const row of turn % 2 === 0 ? measured : measured.toReversed()) await take(row, connections)
    }
    for (const { lane, cells } of rows) {
      const reached = Math.max(...(lane.connections ?? all))
      if (reached >= connections) continue
      for (const name of ['@', 'p50@', 'p99@']) cells[`${name}${connections}`] = cells[`${name}${reached}`] ?? []
    }
  }
  return rows.map(({ name, cells }) => ({ name, cells }))
}

export const describeTurns = ({ rounds }: Run, sliceMs: number) =>
  `medians of ${TURNS * rounds} turns of ${sliceMs / 1000} s`

/** Renders the medians of the turns, followed by the medians of the ratios of each turn. */
export function toReportTable({ suite, columns: wanted, rows, ratios = [] }: Report): Table {
  const columns = wanted.filter((column) => rows.some(({ cells }) => cells[column]))
  const toCells = (name: string, read: (column: string) => readonly number[] | undefined) => [
    name,
    ...columns.map((column) => {
      const values = read(column)
      return values === undefined || values.length === 0 ? '' : toFigure(median([...values]))
    }),
  ]
  const find = (name: string) => rows.find((row) => row.name === name)
  return {
    head: [suite, ...columns],
    rows: [
      ...rows.map(({ name, cells }) => toCells(name, (column) => cells[column])),
      ...ratios.flatMap(([top, bottom]) => {
        const [over, under] = [find(top)?.cells, find(bottom)?.cells]
        if (over === undefined || under === undefined) return []
        return [toCells(`${top} ÷ ${bottom}`, (column) => divide(over[column], under[column]))]
      }),
    ],
  }
}

function divide(top: readonly number[] = [], bottom: readonly number[] = []): number[] {
  return top.flatMap((value, turn) => (bottom[turn] === undefined ? [] : [value / bottom[turn]]))
}

/** Parses `--connections`. Returns the numbers in ascending order. */
export function readConnections(text: string): number[] {
  const all = text.split(',').map(Number)
  if (all.every((each) => Number.isSafeInteger(each) && each > 0 && each <= 1024)) return all.toSorted((a, b) => a - b)
  throw new WrongArgumentError(`invalid --connections ${text}: expected numbers from 1 to 1024`)
}
