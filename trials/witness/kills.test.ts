import { expect, test } from 'vitest'
import { runKills } from './runKills.ts'

// 1,000 of them: npm run witness:kills.
test('killed six times while two histories are offered, a witness cosigns one and forgets nothing', async () => {
  const { cosigned, recorded, unrecorded, ...report } = await runKills({ kills: 6, seed: 3, say() {} })
  expect(report).toEqual({ kills: 6, both: [], lost: [] })
  // Two of the kills come right after a cosignature.
  expect(cosigned).toBeGreaterThanOrEqual(2)
  expect(recorded).toBeGreaterThanOrEqual(2)
  expect(recorded + unrecorded).toBeLessThanOrEqual(6)
})
