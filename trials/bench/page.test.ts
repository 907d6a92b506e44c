import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { fillSummary, readPlace } from './page.ts'
import { bench } from './runBench.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test('the page of figures has a place for every suite, with when, where and at which commit it was measured', async () => {
  const page = await read('docs/performance.md')
  for (const suite of [...(bench.names ?? []), 'budget']) {
    expect(readPlace(page, suite), suite).toMatch(
      /^_Measured: \d{4}-\d\d-\d\d, .* cores .*, Node v[\d.]+, commit [\da-f]{8}\._\n/,
    )
  }
})

test('the figures of the README are those of the page', async () => {
  const readme = await read('README.md')
  expect(fillSummary(readme, await read('docs/performance.md'))).toBe(readme)
})
