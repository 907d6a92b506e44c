import { expect, test } from 'vitest'
import { runRetention } from './runRetention.ts'

// A million of them: npm run retention.
test('600 proofs, most of whose receipts left the database under a worker that was killed: all answer what they did', async () => {
  const proofs = 600
  const report = await runRetention({ proofs, version: 1, say() {} })
  expect(report).toMatchObject({ proofs, read: proofs, wrong: [] })
  expect(report.dropped).toBeGreaterThanOrEqual(400)
  expect(report.killedAt).toBeGreaterThan(0)
  expect(report.dropped + report.held).toBe(500)
  expect(report.afterFull.attestations).toBeLessThan(report.filled.attestations / 2)
}, 240_000)
