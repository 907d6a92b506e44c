import { findProgram } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runCluster } from './runCluster.ts'

const hasHaproxy = findProgram('haproxy') !== undefined
if (!hasHaproxy) console.log('HAProxy not found: skipping the cluster test')

// All processes and faults, also without logs, run with: npm run cluster.
test.runIf(hasHaproxy)(
  'no request fails when an enclave dies, a witness freezes or a coordinator stops',
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
