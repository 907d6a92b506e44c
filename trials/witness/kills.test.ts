import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runKills } from './runKills.ts'

// 1,000 of them: npm run witness:kills.
test('killed six times while two histories are offered, a witness cosigns one and forgets nothing', async () => {
  const { faults, figures } = await withScope((scope) => runKills({ scope, say() {} }, { kills: 6, seed: 3 }))
  expect(faults).toEqual([])
  // Two of the kills come right after a cosignature.
  expect(figures?.cosigned).toBeGreaterThanOrEqual(2)
  expect(figures?.recorded).toBeGreaterThanOrEqual(2)
})
