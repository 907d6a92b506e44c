/** Figures are drawn on a card of their own, so that they can be read on any page, light or dark. */
export const WIDTH = 720
export const HEIGHT = 400
export const AREA = { left: 76, right: 20, top: 56, bottom: 58 }
/** For series: those that can be told apart in both schemes and by most who do not see all colours. The others are for parts of bars, which have an order too. */
const COLOURS = 6
const LIGHT = [
  '#0969da',
  '#bc4c00',
  '#1a7f37',
  '#8250df',
  '#bf3989',
  '#57606a',
  '#1b9aaa',
  '#bf8700',
  '#cf222e',
  '#54aeff',
]
const MORE_LIGHT = ['#4ac26b', '#6f4e37', '#a8b1bb', '#d4c5f9', '#e6b8a2']
const DARK = [
  '#58a6ff',
  '#f0883e',
  '#3fb950',
  '#bc8cff',
  '#ff7bbd',
  '#b1bac4',
  '#39c5cf',
  '#e3b341',
  '#ff7b72',
  '#1f6feb',
]
const MORE_DARK = ['#196c2e', '#c69c6d', '#6e7681', '#5a32a3', '#8a4b2d']

const STYLE = `
  .card { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .quiet { fill: #59636e; font-size: 12px }
  .grid { stroke: #d8dee4; stroke-width: 1 }
  .limit { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 6 4 }
  .line { fill: none; stroke-width: 2.5 }
  .part { stroke: #ffffff; stroke-width: 1 }
  ${toRules([...LIGHT, ...MORE_LIGHT])}
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .quiet { fill: #9198a1 }
    .grid { stroke: #30363d }
    .part { stroke: #0d1117 }
    .limit { stroke: #9198a1 }
    ${toRules([...DARK, ...MORE_DARK])}
  }`

function toRules(colours: readonly string[]): string {
  return colours
    .map((colour, index) => `.fill${index} { fill: ${colour} } .stroke${index} { stroke: ${colour} }`)
    .join('\n  ')
}

/** A picture with a title, around what is drawn. */
export function toSvg({
  title,
  body,
  height = HEIGHT,
}: {
  title: string
  body: readonly string[]
  height?: number
}): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${toXml(title)}">
<title>${toXml(title)}</title>
<style>${STYLE}
</style>
<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>
${toText(title, { x: 20, y: 28, className: 'title' })}
${body.join('\n')}
</svg>
`
}

type TextPlace = { x: number; y: number; className?: string; anchor?: 'start' | 'middle' | 'end'; isTurned?: boolean }

export function toText(text: string, { x, y, className, anchor = 'start', isTurned = false }: TextPlace): string {
  const kind = className === undefined ? '' : ` class="${className}"`
  const turn = isTurned ? ` transform="rotate(-90 ${toPx(x)} ${toPx(y)})"` : ''
  return `<text x="${toPx(x)}" y="${toPx(y)}" text-anchor="${anchor}"${kind}${turn}>${toXml(text)}</text>`
}

export function toColour(index: number): number {
  return index % COLOURS
}

/** A tenth of a pixel is enough. */
export function toPx(value: number): string {
  if (!Number.isFinite(value)) throw new Error('a figure has no place for what is not a number')
  return String(Math.round(value * 10) / 10)
}

export function toXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
