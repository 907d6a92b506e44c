import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runKills } from './runKills.ts'

// 1,000 kills: npm run witness:kills.
test('cosigns one of two histories and forgets nothing when killed six times', async () => {
  const { faults, figures } = await withScope((scope) => runKills({ scope, say() {} }, { kills: 6, seed: 3 }))
  expect(faults).toEqual([])
  // Two of the kills follow a cosignature.
  expect(figures?.cosigned).toBeGreaterThanOrEqual(2)
  expect(figures?.recorded).toBeGreaterThanOrEqual(2)
})
