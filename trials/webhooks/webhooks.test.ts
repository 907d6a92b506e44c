import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runWebhooks } from './runWebhooks.ts'

// 10,000 of them: npm run webhooks.
test('each webhook is delivered at least once, whichever process is killed and however the receiver fails', async () => {
  const { faults, figures } = await withScope((scope) => runWebhooks({ scope, say() {} }, { count: 60, seed: 3 }))
  expect(faults).toEqual([])
  expect(figures?.causes).toBeGreaterThanOrEqual(60)
  expect(figures).toMatchObject({ delivered: figures?.causes, dead: 5 })
  expect(figures?.forged).toBeGreaterThan(40)
}, 300_000)
