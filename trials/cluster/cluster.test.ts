import { expect, test } from 'vitest'
import { findIdle, runCluster } from './runCluster.ts'

// Every member and every fault, without logs too: npm run cluster.
test('three coordinators, two workers, two enclaves, three witnesses: one dies, freezes or stops, and no request fails', async () => {
  const { faults, failovers } = await runCluster({
    hits: [
      { name: 'enclave 1', fault: 'killed' },
      { name: 'witness 1', fault: 'frozen' },
      { name: 'coordinator 1', fault: 'stopped' },
    ],
    rounds: 0,
    connections: [],
    hasLog: true,
    say() {},
  })
  expect(faults).toEqual([])
  expect(failovers.map(({ slugs }) => slugs.length > 0)).toEqual([true, true, true])
}, 180_000)

test('a process without work is a fault where there was to be load, also if nothing at all was signed', () => {
  const work = [
    { member: 'coordinator 1', count: 0, of: 'signatures' },
    { member: 'worker 1', count: 0, of: 'receipts' },
  ]
  expect(findIdle([{ name: 'enclave 1', fault: 'killed' }], work)).toEqual([
    'coordinator 1 had no work',
    'worker 1 had no work',
  ])
  expect(findIdle([], work)).toEqual([])
})
