import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { Machine } from './machine.ts'
import { fillPage, readPlace } from './page.ts'
import type { Report } from './report.ts'
import { suiteNames } from './suiteNames.ts'

const report: Report = {
  suite: 'sign',
  title: 'Signing',
  setting: 'New.',
  rows: [{ name: 'p50', value: 86, unit: 'ms' }],
}
const machine: Machine = {
  node: 'v24.0.0',
  arch: 'arm64',
  cores: 2,
  processor: 'Neoverse-N1',
  memoryGiB: 8,
  date: '2026-11-16T09:00:00.000Z',
  commit: 'commit 7840740d',
}
const page =
  'Before.\n<!-- bench sign -->\nOld.\n<!-- end -->\nBetween.\n<!-- bench reads -->\nKept.\n<!-- end -->\nAfter.\n'

test('a report takes the place of the one before, and of nothing else', () => {
  const filled = fillPage(page, [report], machine)
  expect(filled).toContain(
    'Before.\n<!-- bench sign -->\n\n_Measured: 2026-11-16, arm64, 2 cores (Neoverse-N1), 8 GiB, Node v24.0.0, commit 7840740d._\n\nNew.\n',
  )
  expect(filled).toContain('| p50     | 86 ms |')
  expect(filled).toContain('<!-- end -->\nBetween.\n<!-- bench reads -->\nKept.\n<!-- end -->\nAfter.\n')
  expect(filled).not.toContain('Old.')
  expect(fillPage(filled, [report], machine)).toBe(filled)
})

test.each(['no place', '<!-- bench sign --> never ends'])('%j has no place for a report', (text) => {
  expect(() => fillPage(text, [report], machine)).toThrow('no place for sign')
})

test('the figures of the documentation have a place for every suite, and say when, where and of which commit each was measured', async () => {
  const text = await readFile(new URL('../../docs/performance.md', import.meta.url), 'utf8')
  // Of `sign`, the second report.
  for (const suite of [...suiteNames, 'budget']) {
    expect(readPlace(text, suite), suite).toMatch(
      /^_Measured: \d{4}-\d\d-\d\d, .* cores .*, Node v[\d.]+, commit [\da-f]{8}\._\n/,
    )
  }
})
