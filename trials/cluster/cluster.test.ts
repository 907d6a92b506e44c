import { findProgram } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runCluster } from './runCluster.ts'

const hasHaproxy = findProgram('haproxy') !== undefined
if (!hasHaproxy) console.log('cluster was not tried: HAProxy is not here')

// Every member and every fault, without logs too: npm run cluster.
test.runIf(hasHaproxy)(
  'three coordinators, two workers, two enclaves, three witnesses: one dies, freezes or stops, and no request fails',
  async () => {
    const options = { rounds: 0, failovers: 0, connections: '64', witnesses: true }
    const { faults, figures } = await withScope((scope) =>
      runCluster({ scope, say() {} }, options, [
        { name: 'enclave 1', fault: 'killed' },
        { name: 'witness 1', fault: 'frozen' },
        { name: 'coordinator 1', fault: 'stopped' },
      ]),
    )
    expect(faults).toEqual([])
    expect(figures).toMatchObject({ failovers: 3 })
    expect(figures?.signatures).toBeGreaterThan(100)
  },
  300_000,
)
