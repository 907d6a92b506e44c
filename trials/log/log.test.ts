import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runAttacks } from './runAttacks.ts'
import { runKills } from './runKills.ts'
import { runSignings } from './runSignings.ts'

const say = () => {}

// With 10,000 signatures: npm run log:signings.
test('releases nothing without a quorum while witnesses misbehave, and no signature to a caller that got an error', async () => {
  const options = { count: 60, seed: 5, callers: 12, receipts: 5 }
  const { faults, figures } = await withScope((scope) => runSignings({ scope, say }, options))
  expect(faults).toEqual([])
  expect(figures).toMatchObject({ receipts: 5 })
  expect(figures?.requests).toBeGreaterThanOrEqual(60)
  expect(figures?.answered).toBeGreaterThan(30)
}, 300_000)

// Every step, five times: npm run log:kills.
test.each(['after the commit', 'released, before', 'witness: recorded'])(
  'one history and all answers survive a kill at “%s”',
  async (only) => {
    const { faults, figures } = await withScope((scope) => runKills({ scope, say }, { rounds: 1, only }))
    expect(faults).toEqual([])
    expect(figures).toMatchObject({ kills: 1, answered: 6, receipts: 6 })
  },
  300_000,
)

// All attacks: npm run log:attacks.
test.each(['frontier', 'secret use'])(
  'the attack “%s” on the log fails',
  async (only) => {
    expect((await withScope((scope) => runAttacks({ scope, say }, { only }))).faults).toEqual([])
  },
  300_000,
)
