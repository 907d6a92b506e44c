import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { fillPage } from './page.ts'
import type { Report } from './report.ts'

const report: Report = {
  suite: 'sign',
  title: 'Signing',
  setting: 'New.',
  rows: [{ name: 'p50', value: 86, unit: 'ms' }],
}
const page =
  'Before.\n<!-- bench sign -->\nOld.\n<!-- end -->\nBetween.\n<!-- bench reads -->\nKept.\n<!-- end -->\nAfter.\n'

test('a report takes the place of the one before, and of nothing else', () => {
  const filled = fillPage(page, [report])
  expect(filled).toContain('Before.\n<!-- bench sign -->\n\nNew.\n')
  expect(filled).toContain('| p50     | 86 ms |')
  expect(filled).toContain('<!-- end -->\nBetween.\n<!-- bench reads -->\nKept.\n<!-- end -->\nAfter.\n')
  expect(filled).not.toContain('Old.')
  expect(fillPage(filled, [report])).toBe(filled)
})

test.each(['no place', '<!-- bench sign --> never ends'])('%j has no place for a report', (text) => {
  expect(() => fillPage(text, [report])).toThrow('no place for sign')
})

test('the figures of the documentation have a place for every suite', async () => {
  const text = await readFile(new URL('../../docs/performance.md', import.meta.url), 'utf8')
  const suites = await readFile(new URL('./suites.ts', import.meta.url), 'utf8')
  const names = [...suites.matchAll(/^ {2}([a-z]+): bench/gm)].map(([, name = '']) => name)
  expect(names.length).toBeGreaterThan(5)
  for (const suite of names) expect(() => fillPage(text, [{ ...report, suite }])).not.toThrow()
})
