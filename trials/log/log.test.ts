import { expect, test } from 'vitest'
import { runAttacks } from './runAttacks.ts'
import { runKills } from './runKills.ts'
import { runSignings } from './runSignings.ts'

// 10,000 of them: npm run log:signings.
test('while witnesses misbehave, nothing is released without a quorum, and who was told of a failure gets no signature', async () => {
  const report = await runSignings({ count: 60, seed: 5, callers: 12, receipts: 5, say() {} })
  expect(report.faults).toEqual([])
  expect(report.asked).toBeGreaterThanOrEqual(60)
  expect(report.answered).toBeGreaterThan(30)
  expect(report.receipts).toBe(5)
  const { committed, dropped, unacknowledged } = report.entries
  expect(committed + dropped + unacknowledged).toBe(report.entries.signatures)
  expect(Object.keys(report.witnesses).length).toBeGreaterThan(2)
}, 300_000)

// Each step five times: npm run log:kills.
test('enclave, coordinator and witness are killed: one history, every answer stands', async () => {
  const report = await runKills({
    points: [
      'coordinator: after the commit',
      'enclave: released, before its answer',
      'witness: recorded, before its answer',
    ],
    say() {},
  })
  expect(report).toMatchObject({ kills: 3, answered: 18, receipts: 18, faults: [] })
}, 300_000)

// All of them: npm run log:attacks.
test.each([
  ['with a made-up frontier nothing is released, and a spare takes over', 'frontier made up by the coordinator'],
  ['the monitor detects secret signatures on the spare origin by default', 'secret use of the spare origin'],
] as const)(
  '%s',
  async (_, name) => {
    expect(await runAttacks({ names: [name], say() {} })).toEqual([{ name, faults: [] }])
  },
  300_000,
)
