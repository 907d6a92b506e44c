import { toFigure } from '../table.ts'
import { AREA, toPx, toSvg, toText, WIDTH } from './frame.ts'
import { toLinear } from './scale.ts'

export type Bars = {
  title: string
  /** What the bars measure, with its unit. */
  label: string
  unit: string
  bars: readonly { name: string; value: number }[]
}

const ROW = 44
const MARGIN = 90

/** Bars with their names above and their values beside them. */
export function drawBars({ title, label, unit, bars }: Bars): string {
  const height = AREA.top + bars.length * ROW + AREA.bottom - 10
  const bottom = AREA.top + bars.length * ROW
  const left = 20
  const x = toLinear(
    bars.map(({ value }) => value),
    [left, WIDTH - MARGIN],
  )
  const grid = x.ticks.flatMap((tick) => [
    `<line class="grid" x1="${toPx(x.place(tick))}" x2="${toPx(x.place(tick))}" y1="${AREA.top - 8}" y2="${bottom}"/>`,
    toText(toFigure(tick), { x: x.place(tick), y: bottom + 16, className: 'quiet', anchor: 'middle' }),
  ])
  const drawn = bars.flatMap(({ name, value }, index) => {
    const y = AREA.top + index * ROW
    const end = x.place(value)
    return [
      // Names come from tables, where some of them are code.
      toText(name.replaceAll('`', ''), { x: left + 4, y: y + 10 }),
      `<rect class="fill0" x="${left}" y="${y + 16}" width="${toPx(Math.max(end - left, 1))}" height="16" rx="2"/>`,
      toText(`${toFigure(value)} ${unit}`, { x: end + 8, y: y + 29 }),
    ]
  })
  const middle = (left + WIDTH - MARGIN) / 2
  const below = toText(label, { x: middle, y: height - 10, className: 'quiet', anchor: 'middle' })
  return toSvg({ title, body: [...grid, ...drawn, below], height })
}
