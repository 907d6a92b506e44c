import { expect, test } from 'vitest'
import { compareApprovals } from '../fuzz/randomApprovals.ts'
import { checkRandomPolicies } from '../fuzz/randomPolicies.ts'

// `npm run fuzz:policy` runs 100,000.
test('random policies allow the same as a second evaluator, and are rejected with one fault', () => {
  const { free, approved, refused, counted } = checkRandomPolicies({ runs: 1_000, seed: 2 })
  expect(Math.min(free, approved, refused)).toBeGreaterThan(100)
  expect(counted).toBeGreaterThan(20)
})

// `npm run fuzz:policy` runs 10,000.
test('accepts no approval that @simplewebauthn/server rejects', async () => {
  const { accepted, stricter, rejected } = await compareApprovals({ runs: 400, seed: 2 })
  expect(Math.min(accepted, rejected)).toBeGreaterThan(100)
  expect(stricter).toBeGreaterThan(0)
}, 60_000)
