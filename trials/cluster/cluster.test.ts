import { expect, test } from 'vitest'
import { runCluster } from './runCluster.ts'

test('three coordinators, two workers, two enclaves: one of them dies, freezes or stops, and no request fails', async () => {
  const { faults, failovers } = await runCluster({
    hits: [
      { name: 'enclave 1', fault: 'killed' },
      { name: 'enclave 2', fault: 'frozen' },
      { name: 'coordinator 1', fault: 'stopped' },
    ],
    rounds: 0,
    connections: [],
    say() {},
  })
  expect(faults).toEqual([])
  expect(failovers.map(({ slugs }) => slugs.length > 0)).toEqual([true, true, true])
}, 180_000)
