import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runRetention } from './runRetention.ts'

// Larger runs: npm run retention.
test('proofs read the same after a worker, killed once meanwhile, has dropped most of 600 receipts', async () => {
  const options = { proofs: 600, receipts: 1 }
  const { faults, figures } = await withScope((scope) => runRetention({ scope, say() {} }, options))
  expect(faults).toEqual([])
  expect(figures).toMatchObject({ proofs: 600, read: 600 })
  expect(figures?.dropped).toBeGreaterThanOrEqual(500)
  expect(figures?.killedAt).toBeGreaterThan(0)
}, 300_000)
