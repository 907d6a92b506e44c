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

  test('what is changed by hand is tried whatever the share, and workers that take turns leave nothing out', async () => {
    const genuine = new Uint8Array([1, 2, 3])
    const byHand = [{ label: 'another', bytes: new Uint8Array([4]) }]
    const gullible = { name: '', genuine, byHand, accept: async () => true }
    expect((await sweep(gullible, { share: 1e-9, seed: 1 })).accepted).toEqual(['another'])
    const whole = await sweep(gullible, { share: 0.5, seed: 1 })
    const turns = [0, 1, 2].map((first) => sweep(gullible, { share: 0.5, seed: 1, turn: { first, of: 3 } }))
    const labels = (await Promise.all(turns)).flatMap(({ accepted }) => accepted)
    expect(labels.toSorted()).toEqual(whole.accepted.toSorted())
  })

  test('a judge that stops at the first failed step refuses what one that goes on refuses', async () => {
    const target = targets.find(({ name }) => name === 'receipt v2 release named anew')
    const stripped = target?.byHand?.find(({ label }) => label.includes('Ed25519 alone'))?.bytes ?? new Uint8Array()
    for (let time = 0; time < 50; time++) expect(await target?.accept(stripped)).toBe(false)
    expect(await target?.accept(target.genuine)).toBe(true)
  })
})
