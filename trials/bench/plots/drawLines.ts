import type { Limit, Series } from '../report.ts'
import { toFigure } from '../table.ts'
import { AREA, HEIGHT, toColour, toPx, toSvg, toText, WIDTH } from './frame.ts'
import { toLinear, toLogarithmic } from './scale.ts'

export type Lines = {
  title: string
  xLabel: string
  yLabel: string
  series: readonly Series[]
  /** For values that grow by factors. Such points are few, and each is marked with its value. */
  isLogarithmic?: boolean
  /** Drawn across, with their names at the right end, where lines that grow are far above. */
  limits?: readonly Limit[]
}

const LABEL_BELOW = 19

/** Lines over a common axis. */
export function drawLines({ title, xLabel, yLabel, series, isLogarithmic = false, limits = [] }: Lines): string {
  const points = series.flatMap(({ points }) => points)
  const xs = points.map(([x]) => x)
  // Room for what is written at the first and the last point.
  const inset = isLogarithmic ? 30 : 0
  const across = [AREA.left + inset, WIDTH - AREA.right - inset] as const
  const x = isLogarithmic ? toLogarithmic(xs, across) : toLinear(xs, across)
  const top = AREA.top + 18
  const y = toLinear(
    [...points.map(([, value]) => value), ...limits.map(({ value }) => value)],
    [HEIGHT - AREA.bottom, top],
  )
  const grid = y.ticks.flatMap((tick) => [
    `<line class="grid" x1="${AREA.left}" x2="${WIDTH - AREA.right}" y1="${toPx(y.place(tick))}" y2="${toPx(y.place(tick))}"/>`,
    toText(toFigure(tick), { x: AREA.left - 8, y: y.place(tick) + 4, className: 'quiet', anchor: 'end' }),
  ])
  const below = x.ticks.map((tick) =>
    toText(tick.toLocaleString('en-GB'), {
      x: x.place(tick),
      y: HEIGHT - AREA.bottom + 18,
      className: 'quiet',
      anchor: 'middle',
    }),
  )
  const lines = series.flatMap(({ points }, index) => {
    const colour = toColour(index)
    const path = points.map(([px, py]) => `${toPx(x.place(px))},${toPx(y.place(py))}`).join(' ')
    const marks = !isLogarithmic
      ? []
      : points.flatMap(([px, py]) => {
          // The value of the highest stands above it, those of the others below, or beside it where below is the axis.
          const isHighest = series.every((other) => other.points.every(([ox, oy]) => ox !== px || oy <= py))
          const [cx, cy] = [x.place(px), y.place(py)]
          const isLow = cy + LABEL_BELOW > HEIGHT - AREA.bottom
          const isLast = cx > WIDTH / 2
          const place = isHighest
            ? ({ x: cx, y: cy - 9, anchor: 'middle' } as const)
            : isLow
              ? ({ x: cx + (isLast ? -9 : 9), y: cy + 13, anchor: isLast ? 'end' : 'start' } as const)
              : ({ x: cx, y: cy + LABEL_BELOW, anchor: 'middle' } as const)
          return [
            `<circle class="fill${colour}" cx="${toPx(cx)}" cy="${toPx(cy)}" r="4"/>`,
            toText(toFigure(py), { ...place, className: `fill${colour}` }),
          ]
        })
    return [`<polyline class="line stroke${colour}" points="${path}"/>`, ...marks]
  })
  const limitLines = limits.flatMap(({ name, value, unit }) => [
    `<line class="limit" x1="${AREA.left}" x2="${WIDTH - AREA.right}" y1="${toPx(y.place(value))}" y2="${toPx(y.place(value))}"/>`,
    toText(`${name}: ${toFigure(value)} ${unit}`, {
      x: WIDTH - AREA.right - 4,
      y: y.place(value) - 6,
      className: 'quiet',
      anchor: 'end',
    }),
  ])
  const body = [
    ...grid,
    ...below,
    ...limitLines,
    ...lines,
    ...toLegend(series.map(({ name }) => name)),
    toText(xLabel, { x: (AREA.left + WIDTH - AREA.right) / 2, y: HEIGHT - 14, className: 'quiet', anchor: 'middle' }),
    toText(yLabel, { x: 20, y: HEIGHT / 2, className: 'quiet', anchor: 'middle', isTurned: true }),
  ]
  return toSvg({ title, body })
}

function toLegend(names: readonly string[]): string[] {
  const width = (WIDTH - AREA.left - AREA.right) / Math.max(names.length, 1)
  return names.flatMap((name, index) => {
    const x = AREA.left + index * width
    return [
      `<rect class="fill${toColour(index)}" x="${toPx(x)}" y="${AREA.top - 16}" width="12" height="12" rx="2"/>`,
      toText(name, { x: x + 18, y: AREA.top - 6 }),
    ]
  })
}
