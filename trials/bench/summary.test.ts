import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { fillSummary } from './summary.ts'

const readme = 'Before.\n<!-- bench summary -->\nOld.\n<!-- end -->\nAfter.\n'
const toPlace = (name: string, text = '') => `<!-- bench ${name} -->\n\n${text}\n\n<!-- end -->\n`
const SIGN = `_Measured: 2026-11-16, arm64, 2 cores._

On PostgreSQL, quotes of 39 ms.

| Measure    | At              | Value  | Against                                       |
| ---------- | --------------- | ------ | --------------------------------------------- |
| signatures | 1 connections   | 20 /s  | 1 × one quote each                            |
| signatures | 256 connections | 937 /s | 33.5 × one quote each; 0.050 × an echo server |
| p50        | 64 connections  | 112 ms |                                               |`
const toPage = (sign: string) =>
  [toPlace('sign', sign), ...['budget', 'reads', 'pipeline', 'verification'].map((name) => toPlace(name))].join('')

test('has the main figures, what they were measured on, and that the silicon is simulated', () => {
  expect(fillSummary(readme, toPage(SIGN))).toBe(`Before.
<!-- bench summary -->

| Figure                                              | Value  | Against               |
| --------------------------------------------------- | ------ | --------------------- |
| Signatures through one coordinator, 256 connections | 937 /s | 33.5 × one quote each |
| Time to a signature (p50), 64 connections           | 112 ms |                       |

_Simulated silicon, quotes of 39 ms; 2026-11-16, arm64, 2 cores. [All figures](docs/performance.md)._

<!-- end -->
After.
`)
})

test.each([
  ['does not say on what', toPage(SIGN.replace('_Measured', '_Guessed'))],
  ['does not say how long a quote takes', toPage(SIGN.replace('39 ms', 'some time'))],
  ['has no place for signing', toPage(SIGN).replace('bench sign', 'bench resign')],
])('a page that %s is refused', (_, page) => {
  expect(() => fillSummary(readme, page)).toThrow('the page')
})

test('a README without a place for it is refused', () => {
  expect(() => fillSummary('No place.', toPage(SIGN))).toThrow('no place for summary')
})

test('the figures of the README are those of the documentation', async () => {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
  const text = await read('README.md')
  expect(fillSummary(text, await read('docs/performance.md'))).toBe(text)
})
