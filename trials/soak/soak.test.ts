import { findProgram } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runSoak } from './runSoak.ts'

const hasHaproxy = findProgram('haproxy') !== undefined
if (!hasHaproxy) console.log('HAProxy not found: skipping the soak test')

// Longer runs with more users: npm run soak.
test.runIf(hasHaproxy)(
  'invariants I1 to I10 hold from outside under kills, freezes, cut connections and failing services',
  async () => {
    const options = { minutes: 4 / 60, seed: 1, calm: false, rate: 3, users: 4, witnesses: false, log: '' }
    const { faults, figures } = await withScope((scope) =>
      runSoak({ scope, say() {} }, options, { killEveryMs: 1_000, disturbEveryMs: 1_000 }),
    )
    expect(faults).toEqual([])
    expect(figures?.verified).toBe(figures?.requested)
    expect(figures?.kills).toBeGreaterThan(2)
    expect(Number(figures?.cuts) + Number(figures?.databaseKills)).toBeGreaterThan(0)
  },
  300_000,
)
