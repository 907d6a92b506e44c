import { fillPlace, readPlace } from './page.ts'
import { toTable } from './table.ts'

/** What a newcomer wants to know, by where it stands in the page of figures. */
const FIGURES = [
  {
    label: 'Signatures through one coordinator, 256 connections',
    suite: 'sign',
    row: 'signatures',
    at: '256 connections',
  },
  { label: 'Time to a signature (p50), 1 connection', suite: 'sign', row: 'p50', at: '1 connections' },
  { label: 'Time to a signature (p50), 64 connections', suite: 'sign', row: 'p50', at: '64 connections' },
  { label: 'Processor time of a signature, all processes', suite: 'budget', row: 'all' },
  { label: 'Reads of a proof, 64 connections', suite: 'reads', row: 'reads', at: '64 connections' },
  { label: 'Proofs published by one worker', suite: 'pipeline', row: 'proofs, by the worker' },
  { label: 'Verifying a quote again', suite: 'verification', row: 'countersign, warm' },
] as const

/** A README with the main figures of a page put at their place. Those that the page does not have are left out. */
export function fillSummary(readme: string, page: string): string {
  const rows = FIGURES.flatMap((figure) => {
    const found = findRow(page, figure)
    return found === undefined ? [] : [[figure.label, found.value, found.against]]
  })
  const measured = /^_Measured: (.*)\._$/m.exec(readPlace(page, 'sign'))?.[1]
  const quotes = /quotes of \d+ ms/.exec(readPlace(page, 'sign'))?.[0]
  if (measured === undefined || quotes === undefined)
    throw new Error('the page does not say what signing was measured on')
  const note = `_Simulated silicon, ${quotes}; ${measured}. [All figures](docs/performance.md)._`
  return fillPlace(readme, 'summary', `${toTable(['Figure', 'Value', 'Against'], rows)}\n\n${note}\n`)
}

function findRow(page: string, { suite, row, at }: { suite: string; row: string; at?: string }) {
  const [head, , ...rows] = readPlace(page, suite)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  const toCell = (cells: readonly string[], column: string) => cells[head?.indexOf(column) ?? -1] ?? ''
  const found = rows.find(
    (cells) => toCell(cells, 'Measure').startsWith(row) && (at === undefined || toCell(cells, 'At') === at),
  )
  // The first is the one that matters most.
  return found && { value: toCell(found, 'Value'), against: toCell(found, 'Against').split(';')[0] ?? '' }
}
