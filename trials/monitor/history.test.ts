import { expect, test } from 'vitest'
import { runHistory } from './runHistory.ts'

// 10,000 of them: npm run monitor:history.
test('an honest history raises nothing, and each case that is planted in it is found by name', async () => {
  const report = await runHistory({ count: 30, say() {} })
  expect(report).toMatchObject({ conclusion: 'complete', findings: [] })
  expect(report.headline).toEqual({ proven: 27, nonce: 27, size: 31, entries: 30 })
  expect(report.planted.map(({ name, findings }) => [name, findings.map((line) => line.split(' ')[0])])).toEqual([
    ['a transaction signed outside', ['no-receipt']],
    ['a tile withheld', ['log-withholds']],
    ['a second history', ['log-lies']],
    ['an entry without a receipt', ['hidden']],
  ])
})
