import { expect, test } from 'vitest'
import { WrongArgumentError } from '../trial.ts'
import { type Report, readConnections, toReportTable } from './report.ts'

const report: Report = {
  suite: 'sign',
  setting: 'A setting.',
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

test('a table shows the median of the turns and of the ratios of each turn', () => {
  expect(toReportTable(report)).toEqual({
    head: ['sign', '@1', '@64'],
    rows: [
      ['new', '2', '10'],
      ['old', '1', ''],
      ['new ÷ old', '1', ''],
    ],
  })
})

test.each(['', '1,x', '0', '1.5', '2000'])('rejects --connections %j', (text) => {
  expect(() => readConnections(text)).toThrow(WrongArgumentError)
})

test('sorts the numbers of connections', () => {
  expect(readConnections('64,1')).toEqual([1, 64])
})
