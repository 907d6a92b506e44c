import { describeMachine, type Machine } from './machine.ts'
import type { Report } from './report.ts'
import { toBody } from './table.ts'

const END = '<!-- end -->'

/** A page with the reports put where it says they belong, and when and on what they were measured. What it says around them stays. */
export function fillPage(page: string, reports: readonly Report[], machine: Machine): string {
  return reports.reduce(
    (text, report) => fillPlace(text, report.suite, `_Measured: ${describeMachine(machine)}._\n\n${toBody(report)}`),
    page,
  )
}

/** The page with another text at one of its places. */
export function fillPlace(page: string, name: string, text: string): string {
  const { from, to } = findPlace(page, name)
  return `${page.slice(0, from)}\n\n${text}\n${page.slice(to)}`
}

/** What a page has at one of its places. */
export function readPlace(page: string, name: string): string {
  const { from, to } = findPlace(page, name)
  return page.slice(from, to).trim()
}

function findPlace(page: string, name: string): { from: number; to: number } {
  const start = `<!-- bench ${name} -->`
  const at = page.indexOf(start)
  const to = page.indexOf(END, at)
  if (at < 0 || to < 0) throw new Error(`the page has no place for ${name}`)
  return { from: at + start.length, to }
}
