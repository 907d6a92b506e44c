import { describe, expect, test } from 'vitest'
import { sweep } from './sweep.ts'
import { createTargets } from './targets.ts'

const targets = await createTargets()

/** Verifying a whole receipt takes longer than its parts. */
const toShare = (name: string) => (name.startsWith('receipt') ? 0.001 : 0.01)

// All mutations: npm run sweep.
describe('rejects 1 % of all mutations of evidence, and 0.1 % of those of receipts', () => {
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
