import { describe, expect, test } from 'vitest'
import { sweep } from './sweep.ts'
import { createTargets } from './targets.ts'

const targets = await createTargets()

/** To verify a whole receipt takes longer than any part of it, and there are many parts. */
const toShare = (name: string) => (name.startsWith('receipt') ? 0.001 : 0.01)

// All of them: npm run sweep.
describe('1 % of all byte changes, cuts and additions, 0.1 % of those to receipts: none accepted, none crashes', () => {
  test.each(targets.map((target) => [target.name, target] as const))(
    '%s',
    async (_, target) => {
      const { tried, accepted, crashed } = await sweep(target, { share: toShare(target.name), seed: 20260615 })
      expect(tried).toBeGreaterThan(0)
      expect({ accepted, crashed }).toEqual({ accepted: [], crashed: [] })
    },
    180_000,
  )
})
