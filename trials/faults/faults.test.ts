import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runFaults } from './runFaults.ts'

// All crash points five times and 200 random kills run with: npm run faults.
test('loses and duplicates nothing when killed at two crash points and at a random moment', async () => {
  const outcome = await withScope((scope) =>
    runFaults({ scope, say() {} }, { rounds: 1, kills: 1, witnesses: false, checkpoints: false, seed: 7 }, [
      'after the commit, before the answer',
      'after the claim, before it is sent',
    ]),
  )
  expect(outcome).toEqual({ faults: [], figures: { kills: 3, answered: 9, verified: 9 } })
}, 240_000)

test('loses and duplicates nothing when killed while it publishes checkpoints', async () => {
  const outcome = await withScope((scope) =>
    runFaults({ scope, say() {} }, { rounds: 1, kills: 0, witnesses: true, checkpoints: true, seed: 7 }, [
      'after the anchor is pinned',
      'after it is sent, before that is written',
    ]),
  )
  expect(outcome).toEqual({ faults: [], figures: { kills: 2, answered: 6, verified: 6 } })
}, 240_000)
