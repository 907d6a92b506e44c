import { execFile } from 'node:child_process'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { toTable } from '../table.ts'
import { type Report, toBody } from './report.ts'

const END = '<!-- end -->'

/** What figures depend on, in a line. */
export async function describeMachine(now: Date): Promise<string> {
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const commit = await readCommit('.')
  return `${now.toISOString().slice(0, 10)}, ${process.arch}, ${processor}, ${memory}, Node ${process.version}, ${commit}`
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

/** A page with the report in its place, and when and on what it was measured. The text around it stays. */
export function fillPage(page: string, report: Report, machine: string): string {
  return fillPlace(page, report.suite, `_Measured: ${machine}._\n\n${toBody(report)}`)
}

function fillPlace(page: string, name: string, text: string): string {
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

/** What a newcomer wants to know, by where it stands in the page of figures. */
const FIGURES: readonly (readonly [label: string, suite: string, row: string, at?: string])[] = [
  ['Signatures through one coordinator, 256 connections', 'sign', 'signatures', '256 connections'],
  ['Time to a signature (p50), 1 connection', 'sign', 'p50', '1 connections'],
  ['Time to a signature (p50), 64 connections', 'sign', 'p50', '64 connections'],
  ['Processor time of a signature, all processes', 'budget', 'all'],
  ['Reads of a proof, 64 connections', 'reads', 'reads', '64 connections'],
  ['Proofs published by one worker', 'pipeline', 'proofs, by the worker'],
  ['Verifying a quote again', 'verification', 'countersign, warm'],
]

/** A README with the main figures of a page put at their place. Those that the page does not have are left out. */
export function fillSummary(readme: string, page: string): string {
  const rows = FIGURES.flatMap(([label, suite, row, at]) => {
    const found = findRow(page, suite, row, at)
    return found === undefined ? [] : [[label, ...found]]
  })
  const sign = readPlace(page, 'sign')
  const measured = /^_Measured: (.*)\._$/m.exec(sign)?.[1]
  const quotes = /quotes of \d+ ms/.exec(sign)?.[0]
  const note = `_Simulated silicon, ${quotes}; ${measured}. [All figures](docs/performance.md)._`
  return fillPlace(readme, 'summary', `${toTable({ head: ['Figure', 'Value', 'Against'], rows })}\n\n${note}\n`)
}

/** The value of a row of a table, and the first of its ratios: the most important one. */
function findRow(page: string, suite: string, row: string, at: string | undefined): [string, string] | undefined {
  const [head, , ...rows] = readPlace(page, suite)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const toCell = (cells: readonly string[], column: string) => cells[head?.indexOf(column) ?? -1] ?? ''
  const found = rows.find(
    (cells) => toCell(cells, 'Measure').startsWith(row) && (at === undefined || toCell(cells, 'At') === at),
  )
  return found && [toCell(found, 'Value'), toCell(found, 'Against').split(';')[0] ?? '']
}
