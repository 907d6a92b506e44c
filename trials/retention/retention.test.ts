import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runRetention } from './runRetention.ts'

// More of them: npm run retention.
test('600 proofs, most of whose receipts left the database under a worker that was killed: all answer what they did', async () => {
  const options = { proofs: 600, receipts: 1 }
  const { faults, figures } = await withScope((scope) => runRetention({ scope, say() {} }, options))
  expect(faults).toEqual([])
  expect(figures).toMatchObject({ proofs: 600, read: 600 })
  expect(figures?.dropped).toBeGreaterThanOrEqual(500)
  expect(figures?.killedAt).toBeGreaterThan(0)
}, 300_000)
