export type Table = { head: readonly string[]; rows: readonly (readonly (string | number)[])[] }

/** Renders a table in Markdown, padded as a formatter would do. */
export function toTable({ head, rows }: Table): string {
  const all = [head, ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? toFigure(cell) : cell)))]
  const widths = head.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)))
  const toLine = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [first = [], ...others] = all
  return [toLine(first), toLine(widths.map((width) => '-'.repeat(width))), ...others.map(toLine)].join('\n')
}

/** Three significant digits; whole numbers in full. */
export function toFigure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 100) return Math.round(value).toLocaleString('en-GB')
  if (Number.isInteger(value)) return String(value)
  if (size >= 10) return value.toFixed(1)
  if (size >= 1) return value.toFixed(2)
  return value.toPrecision(2)
}
