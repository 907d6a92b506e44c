import type { Stack } from '../report.ts'
import { toFigure } from '../table.ts'
import { AREA, toPx, toSvg, toText, toXml, WIDTH } from './frame.ts'
import { toLinear } from './scale.ts'

export type Stacks = {
  title: string
  /** What the bars measure, with its unit. */
  label: string
  unit: string
  /** In the order of their colours. */
  parts: readonly string[]
  stacks: readonly Stack[]
}

const ROW = 40
const MARGIN = 90
const LEFT = 20
const LEGEND_COLUMNS = 5
const LEGEND_ROW = 20

/** Bars made of parts, with their names above and their sums beside them. */
export function drawStacks({ title, label, unit, parts, stacks }: Stacks): string {
  const used = parts.filter((part) => stacks.some((stack) => stack.parts.some(({ name }) => name === part)))
  const top = AREA.top + Math.ceil(used.length / LEGEND_COLUMNS) * LEGEND_ROW + 4
  const bottom = top + stacks.length * ROW
  const height = bottom + AREA.bottom - 10
  const sums = stacks.map((stack) => stack.parts.reduce((sum, { value }) => sum + value, 0))
  const x = toLinear(sums, [LEFT, WIDTH - MARGIN])
  const legend = used.flatMap((part, index) => {
    const column = ((WIDTH - 2 * LEFT) / LEGEND_COLUMNS) * (index % LEGEND_COLUMNS)
    const y = AREA.top - 14 + Math.floor(index / LEGEND_COLUMNS) * LEGEND_ROW
    return [
      `<rect class="fill${parts.indexOf(part)}" x="${toPx(LEFT + column)}" y="${y}" width="12" height="12" rx="2"/>`,
      toText(part, { x: LEFT + column + 18, y: y + 10, className: 'quiet' }),
    ]
  })
  const grid = x.ticks.flatMap((tick) => [
    `<line class="grid" x1="${toPx(x.place(tick))}" x2="${toPx(x.place(tick))}" y1="${top - 8}" y2="${bottom}"/>`,
    toText(toFigure(tick), { x: x.place(tick), y: bottom + 16, className: 'quiet', anchor: 'middle' }),
  ])
  const drawn = stacks.flatMap((stack, index) => {
    const y = top + index * ROW
    let from = 0
    const segments = stack.parts.map(({ name, value }) => {
      const [start, end] = [x.place(from), x.place(from + value)]
      from += value
      return (
        `<rect class="part fill${parts.indexOf(name)}" x="${toPx(start)}" y="${y + 14}" width="${toPx(end - start)}" height="16">` +
        `<title>${toXml(`${name} ${toFigure(value)} ${unit}`)}</title></rect>`
      )
    })
    return [
      toText(stack.name, { x: LEFT + 4, y: y + 9, className: 'quiet' }),
      ...segments,
      toText(`${toFigure(from)} ${unit}`, { x: x.place(from) + 8, y: y + 27 }),
    ]
  })
  const middle = (LEFT + WIDTH - MARGIN) / 2
  const below = toText(label, { x: middle, y: height - 10, className: 'quiet', anchor: 'middle' })
  return toSvg({ title, body: [...legend, ...grid, ...drawn, below], height })
}
