import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runWebhooks } from './runWebhooks.ts'

// 10,000 webhooks: npm run webhooks.
test('delivers each webhook at least once despite kills and a failing receiver', async () => {
  const { faults, figures } = await withScope((scope) => runWebhooks({ scope, say() {} }, { count: 60, seed: 3 }))
  expect(faults).toEqual([])
  expect(figures?.causes).toBeGreaterThanOrEqual(60)
  expect(figures).toMatchObject({ delivered: figures?.causes, dead: 5 })
  expect(figures?.forged).toBeGreaterThan(40)
}, 300_000)
