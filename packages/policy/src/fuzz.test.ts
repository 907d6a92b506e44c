import { expect, test } from 'vitest'
import { compareApprovals } from '../fuzz/randomApprovals.ts'
import { checkRandomPolicies } from '../fuzz/randomPolicies.ts'

// `npm run fuzz:policy` asks 100,000.
test('random policies allow what a second evaluator allows, and no policy is accepted with one part wrong', () => {
  const { free, approved, refused } = checkRandomPolicies({ runs: 1_000, seed: 2 })
  expect(Math.min(free, approved, refused)).toBeGreaterThan(100)
})

// `npm run fuzz:policy` draws 10,000.
test('accepts no approval that @simplewebauthn/server rejects', async () => {
  const { accepted, stricter, rejected } = await compareApprovals({ runs: 400, seed: 2 })
  expect(Math.min(accepted, rejected)).toBeGreaterThan(100)
  expect(stricter).toBeGreaterThan(0)
}, 60_000)
