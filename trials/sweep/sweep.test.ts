import { describe, expect, test } from 'vitest'
import { sweep } from './sweep.ts'
import { createTargets } from './targets.ts'

const targets = await createTargets()

/** To verify a whole receipt takes ten times as long as any part of it. */
const toShare = (name: string) => (name.startsWith('receipt') ? 0.01 : 0.05)

describe('5 % of all byte changes, cuts and additions, 1 % of those to receipts: none accepted, none crashes', () => {
  test.each(targets.map((target) => [target.name, target] as const))(
    '%s',
    async (_, target) => {
      const { tried, accepted, crashed } = await sweep(target, { share: toShare(target.name), seed: 20260615 })
      expect(tried).toBeGreaterThan(0)
      expect({ accepted, crashed }).toEqual({ accepted: [], crashed: [] })
    },
    180_000,
  )

  test('the sweep itself notices what is accepted and what crashes', async () => {
    const genuine = new Uint8Array([1, 2, 3])
    const gullible = { name: '', genuine, accept: async () => true }
    expect((await sweep(gullible, { share: 1, seed: 1 })).accepted).toHaveLength(3 + 3 + 64)
    const fragile = {
      name: '',
      genuine,
      accept: async (bytes: Uint8Array) => {
        if (bytes !== genuine) throw new TypeError('boom')
        return true
      },
    }
    expect((await sweep(fragile, { share: 1, seed: 1 })).crashed).toHaveLength(3 + 3 + 64)
  })
})
