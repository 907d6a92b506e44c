import { expect, test } from 'vitest'
import { runFaults } from './runFaults.ts'

// The whole list, five times and on both databases, with 200 random kills: npm run faults.
test('killed at two points of its life and once at random, the service loses nothing and does nothing twice', async () => {
  const report = await runFaults({
    points: ['after the commit, before the answer', 'after the claim, before it is sent'],
    randomKills: 1,
    seed: 7,
    say() {},
  })
  expect(report).toEqual({
    kills: 3,
    answered: 9,
    verified: 9,
    lost: [],
    duplicated: [],
    invalid: [],
    unknown: [],
    changed: [],
  })
}, 240_000)
