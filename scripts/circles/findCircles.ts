import type { Import } from './readImports.ts'

/** Imports of which each leads to the file of the next, and the last to that of the first. */
export type Circle = readonly Import[]

/**
 * The circles among imports: for each import that is part of one, the shortest through it. So all are gone when these are, and
 * a large knot does not show up as thousands.
 */
export function findCircles(imports: readonly Import[]): Circle[] {
  const byFile = Map.groupBy(imports, ({ from }) => from)
  const circles = new Map<string, Circle>()
  for (const first of imports) {
    const rest = findShortestWay(byFile, first.to, first.from)
    if (rest === undefined) continue
    const circle = toCanonical([first, ...rest])
    const key = circle.map(({ from }) => from).join(' ')
    if (!circles.has(key)) circles.set(key, circle)
  }
  return [...circles.values()]
}

/**
 * a.ts → b.ts → a.ts
 *   a.ts:1 imports type B
 *   b.ts:2 imports a
 */
export function describeCircle(circle: Circle): string {
  const files = [...circle.map(({ from }) => from), circle[0]?.from]
  const lines = circle.map(({ from, line, names }) => `\n  ${from}:${line} imports ${names}`)
  return files.join(' → ') + lines.join('')
}

/** Breadth first. Empty where both ends are the same file; undefined where no way leads there. */
function findShortestWay(byFile: ReadonlyMap<string, Import[]>, start: string, end: string): Import[] | undefined {
  const cameBy = new Map<string, Import | undefined>([[start, undefined]])
  // A map is walked in the order of insertion, and what is added on the way is walked too.
  for (const [file] of cameBy) {
    if (file === end) return toWay(cameBy, end)
    for (const step of byFile.get(file) ?? []) if (!cameBy.has(step.to)) cameBy.set(step.to, step)
  }
  return undefined
}

function toWay(cameBy: ReadonlyMap<string, Import | undefined>, end: string): Import[] {
  const way: Import[] = []
  for (let step = cameBy.get(end); step !== undefined; step = cameBy.get(step.from)) way.unshift(step)
  return way
}

/** The same circle, begun at the file that comes first in the alphabet. */
function toCanonical(circle: Circle): Circle {
  const first = circle.map(({ from }) => from).toSorted()[0]
  const index = circle.findIndex(({ from }) => from === first)
  return [...circle.slice(index), ...circle.slice(0, index)]
}
