import { execFile } from 'node:child_process'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { toTable } from '../table.ts'
import { type Report, toReportTable } from './report.ts'

const END = '<!-- end -->'

/** What figures depend on, in a line. */
export async function describeMachine(now: Date): Promise<string> {
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const load = `load ${loadavg()[0]?.toFixed(1)} before`
  const commit = await readCommit('.')
  return `${now.toISOString().slice(0, 10)}, ${process.arch}, ${processor}, ${memory}, Node ${process.version}, ${load}, ${commit}`
}

/** What a folder has checked out: `commit 7840740d`, `commit 7840740d, changed`, or `no commit`. */
export async function readCommit(folder: string): Promise<string> {
  const git = async (...args: string[]) => (await promisify(execFile)('git', ['-C', folder, ...args])).stdout.trim()
  try {
    const commit = await git('rev-parse', '--short=8', 'HEAD')
    return `commit ${commit}${(await git('status', '--porcelain')) === '' ? '' : ', changed'}`
  } catch {
    return 'no commit'
  }
}

/** Puts a report into its place in a page, if the page has one, with its date and machine. The rest of the page stays. */
export function fillPage(page: string, report: Report, machine: string): string {
  const start = `<!-- bench ${report.suite} -->`
  const from = page.indexOf(start)
  if (from < 0) return page
  const to = page.indexOf(END, from)
  if (to < 0) throw new Error(`the place for ${report.suite} has no end`)
  const text = `${report.setting}\n\n${toTable(toReportTable(report))}\n\n_Measured: ${machine}._`
  return `${page.slice(0, from)}${start}\n\n${text}\n\n${page.slice(to)}`
}

/** What a newcomer wants to know: suite, row and column. */
const FIGURES: readonly (readonly [label: string, suite: string, row: string, column: string])[] = [
  ['Signatures a second, 256 connections', 'sign', 'v1', '@256'],
  ['the same with one quote for each', 'sign', 'one quote each', '@256'],
  ['Milliseconds to a signature (p50), 1 connection', 'sign', 'v1', 'p50@1'],
  ['the same, 64 connections', 'sign', 'v1', 'p50@64'],
  ['Processor time of a signature, µs', 'sign', 'v1', 'CPU µs'],
  ['Reads of a proof a second, 64 connections', 'reads', 'proofs', 'v1@64'],
  ['Proofs published a second by one worker', 'pipeline', 'backlog', '/s'],
  ['Milliseconds to verify a quote again', 'verification', 'countersign, warm', 'ms'],
]

/** The main figures of reports, as one report. None if a figure is missing. */
export function toSummary(reports: readonly Report[]): Report[] {
  const rows = FIGURES.flatMap(([name, suite, row, column]) => {
    const found = reports.find((report) => report.suite === suite)?.rows.find((each) => each.name === row)
    return found?.cells[column] ? [{ name, cells: { Value: found.cells[column] } }] : []
  })
  if (rows.length < FIGURES.length) return []
  const setting = 'Simulated silicon, quotes of 39 ms. [All figures](docs/performance.md).'
  return [{ suite: 'summary', setting, columns: ['Value'], rows }]
}
