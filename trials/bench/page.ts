import type { Report } from './report.ts'
import { toBody } from './table.ts'

/** Where the report of a suite stands in a page. */
const toStart = (suite: string) => `<!-- bench ${suite} -->`
const END = '<!-- end -->'

/** A page with the reports put where it says they belong. What it says around them stays. */
export function fillPage(page: string, reports: readonly Report[]): string {
  return reports.reduce((text, report) => {
    const start = toStart(report.suite)
    const from = text.indexOf(start)
    const to = text.indexOf(END, from)
    if (from < 0 || to < 0) throw new Error(`the page has no place for ${report.suite}`)
    return `${text.slice(0, from + start.length)}\n\n${toBody(report)}\n${text.slice(to)}`
  }, page)
}
