import { expect, test } from 'vitest'
import { runWebhooks } from './runWebhooks.ts'

// 10,000 of them: npm run webhooks.
test('each webhook is delivered at least once, whoever is killed and however the receiver fails', async () => {
  const report = await runWebhooks({ count: 60, seed: 3, say() {} })
  expect(report.faults).toEqual([])
  expect(report.causes).toBeGreaterThanOrEqual(60)
  expect(report.delivered).toBe(report.causes)
  expect(report.dead).toBe(5)
  expect(report.forged).toBeGreaterThan(40)
}, 300_000)
