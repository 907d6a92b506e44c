import { expect, test } from 'vitest'
import { checkRandomPolicies } from '../fuzz/randomPolicies.ts'

// `npm run fuzz:policy` asks 100,000.
test('random policies allow what a second evaluator allows, and no policy is accepted with one part wrong', () => {
  const { free, approved, refused } = checkRandomPolicies({ runs: 1_000, seed: 2 })
  expect(Math.min(free, approved, refused)).toBeGreaterThan(100)
})
