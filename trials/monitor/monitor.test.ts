import { expect, test } from 'vitest'
import { runHistory } from './runHistory.ts'
import { runSituations } from './runSituations.ts'

const say = () => {}

// With 10,000 signatures: npm run monitor:history.
test('an honest history has no findings, and each planted fault is reported by its kind', async () => {
  const { faults, figures } = await runHistory({ say }, { count: 30 })
  expect(faults).toEqual([])
  expect(figures).toMatchObject({ proven: 27, nonce: 27, size: 32, entries: 30 })
}, 300_000)

test('headline, exit code and webhook agree in every situation', async () => {
  expect((await runSituations({ say }, { only: '' })).faults).toEqual([])
}, 300_000)
