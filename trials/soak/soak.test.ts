import { expect, test } from 'vitest'
import { runSoak } from './runSoak.ts'

// Minutes of it, with more users: npm run soak.
test('invariants I1 to I10, from the outside: kills, freezes, cuts and failing services lose, double and spoil nothing', async () => {
  const report = await runSoak({
    durationMs: 4_000,
    seed: 1,
    isCalm: false,
    users: 4,
    signRate: 3,
    killEveryMs: 1_000,
    disturbEveryMs: 1_000,
    say() {},
  })
  const { lost, duplicated, invalid, unknown, changed, deaths } = report
  expect({ lost, duplicated, invalid, unknown, changed, deaths }).toEqual({
    lost: [],
    duplicated: [],
    invalid: [],
    unknown: [],
    changed: [],
    deaths: [],
  })
  expect(report.verified).toBe(report.counts.asked)
  expect(report.chaos.kills).toBeGreaterThan(2)
  expect(report.chaos.cuts + report.chaos.databaseKills).toBeGreaterThan(0)
}, 300_000)
