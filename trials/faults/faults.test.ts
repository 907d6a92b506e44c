import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runFaults } from './runFaults.ts'

// The whole list, five times, with 200 random kills: npm run faults.
test('killed at two points of its life and once at random, the service loses nothing and does nothing twice', async () => {
  const outcome = await withScope((scope) =>
    runFaults({ scope, say() {} }, { rounds: 1, kills: 1, witnesses: false, seed: 7 }, [
      'after the commit, before the answer',
      'after the claim, before it is sent',
    ]),
  )
  expect(outcome).toEqual({ faults: [], figures: { kills: 3, answered: 9, verified: 9 } })
}, 240_000)
