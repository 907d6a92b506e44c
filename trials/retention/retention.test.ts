import { expect, test } from 'vitest'
import { runRetention } from './runRetention.ts'

// A million of them: npm run retention.
test('1,200 proofs, most of whose receipts left the database under a worker that was killed: all answer what they did', async () => {
  const proofs = 1_200
  const report = await runRetention({ proofs, version: 1, say() {} })
  expect(report).toMatchObject({ proofs, read: proofs, wrong: [] })
  expect(report.dropped).toBeGreaterThanOrEqual(1_000)
  expect(report.killedAt).toBeGreaterThan(0)
  expect(report.dropped + report.held).toBe(1_100)
  expect(report.afterFull.attestations).toBeLessThan(report.filled.attestations / 2)
}, 240_000)
