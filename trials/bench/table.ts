import type { Report, Row } from './report.ts'

/** A report for reading, in Markdown: a heading, and what follows. */
export function toText(report: Report): string {
  return `## ${report.title}\n\n${toBody(report)}`
}

/** What was measured, a table, and what has to be said in addition. */
export function toBody({ setting, rows, notes = [] }: Report): string {
  return [setting, '', toRows(rows), ...notes.flatMap((note) => ['', note]), ''].join('\n')
}

function toRows(rows: readonly Row[]): string {
  const hasLoads = rows.some(({ at }) => at !== undefined)
  const head = ['Measure', ...(hasLoads ? ['At'] : []), 'Value', 'Against']
  const cells = rows.map((row) => [
    row.name,
    ...(hasLoads ? [row.at === undefined ? '' : `${row.at.value.toLocaleString('en-GB')} ${row.at.of}`] : []),
    `${toFigure(row.value)} ${row.unit}`,
    (row.ratios ?? []).map(({ value, to }) => `${toFigure(value)} × ${to}`).join('; '),
  ])
  return toTable(head, cells)
}

/** As a formatter of Markdown would write it. */
export function toTable(head: readonly string[], cells: readonly (readonly string[])[]): string {
  const all = [head, ...cells]
  const widths = head.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)))
  const toLine = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [toLine(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...cells.map(toLine)].join('\n')
}

/** Three significant digits, and none of a whole number lost. */
export function toFigure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 100) return Math.round(value).toLocaleString('en-GB')
  if (Number.isInteger(value)) return String(value)
  if (size >= 10) return value.toFixed(1)
  if (size >= 1) return value.toFixed(2)
  return value.toPrecision(2)
}
