import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { WrongArgumentError } from '../trial.ts'
import { fillPage, toSummary } from './page.ts'
import { type Report, readConnections, toReportTable } from './report.ts'
import { bench } from './runBench.ts'

const report: Report = {
  suite: 'sign',
  setting: 'What was measured.',
  columns: ['@1', '@64'],
  rows: [
    { name: 'new', cells: { '@1': [1, 2, 30], '@64': [10], 'p50@1': [7] } },
    { name: 'old', cells: { '@1': [1, 1, 60] } },
  ],
  ratios: [
    ['new', 'old'],
    ['new', 'not measured'],
  ],
}

test('a table has medians of turns, and of the ratios of each turn', () => {
  expect(toReportTable(report)).toEqual({
    head: ['sign', '@1', '@64'],
    rows: [
      ['new', '2', '10'],
      ['old', '1', ''],
      ['new ÷ old', '1', ''],
    ],
  })
})

test('a page gets what was measured in its place, again and again', () => {
  const page = 'Before\n\n<!-- bench sign -->\n\n<!-- end -->\n\nAfter\n'
  const filled = fillPage(page, report, 'this machine')
  expect(filled).toContain('| new ÷ old | 1')
  expect(filled).toMatch(
    /^Before\n\n<!-- bench sign -->\n\nWhat was measured\.\n[\s\S]*_Measured: this machine\._\n\n<!-- end -->\n\nAfter\n$/,
  )
  expect(fillPage(filled, report, 'this machine')).toBe(filled)
  expect(fillPage(page, { ...report, suite: 'reads' }, 'this machine')).toBe(page)
})

test('a summary needs all of its figures', () => {
  expect(toSummary([report])).toEqual([])
})

test('the page of figures has a place for every suite, and the README for the summary', async () => {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
  const page = await read('docs/performance.md')
  for (const suite of [...(bench.names ?? []), 'budget']) expect(page).toContain(`<!-- bench ${suite} -->`)
  expect(await read('README.md')).toContain('<!-- bench summary -->')
})

test.each(['', '1,x', '0', '1.5', '2000'])('refuses %j as numbers of connections', (text) => {
  expect(() => readConnections(text)).toThrow(WrongArgumentError)
})

test('measures fewer connections first', () => {
  expect(readConnections('64,1')).toEqual([1, 64])
})
