import { describe, expect, test } from 'vitest'
import type { Report } from './report.ts'
import { toFigure, toText } from './table.ts'

describe('toFigure', () => {
  test.each([
    [0, '0'],
    [5, '5'],
    [0.000_45, '0.00045'],
    [0.45, '0.45'],
    [1.234, '1.23'],
    [12.34, '12.3'],
    [123.4, '123'],
    [1_234_567.8, '1,234,568'],
    [Number.NaN, '–'],
    [Number.POSITIVE_INFINITY, '–'],
  ])('%d as %s', (value, expected) => {
    expect(toFigure(value)).toBe(expected)
  })
})

const report: Report = {
  suite: 'sign',
  title: 'Signing',
  setting: 'On a machine.',
  rows: [
    {
      name: 'signatures',
      at: { value: 1_000, of: 'connections' },
      value: 667.2,
      unit: '/s',
      ratios: [
        { value: 26.71, to: 'one quote each' },
        { value: 0.0213, to: 'an echo server' },
      ],
    },
    { name: 'p50', value: 86, unit: 'ms' },
  ],
  notes: ['Said in addition.'],
}

describe('toText', () => {
  test('is a Markdown table with every ratio beside its figure', () => {
    expect(toText(report)).toBe(`## Signing

On a machine.

| Measure    | At                | Value  | Against                                       |
| ---------- | ----------------- | ------ | --------------------------------------------- |
| signatures | 1,000 connections | 667 /s | 26.7 × one quote each; 0.021 × an echo server |
| p50        |                   | 86 ms  |                                               |

Said in addition.
`)
  })

  test('has no column for loads where there are none', () => {
    expect(toText({ ...report, rows: [{ name: 'p50', value: 86, unit: 'ms' }] })).toContain(
      '| Measure | Value | Against |',
    )
  })
})
