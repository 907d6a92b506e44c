import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { runCheckpoints } from './runCheckpoints.ts'

// Larger runs: npm run checkpoints.
test('a service that switches modes under load loses nothing, and its proofs verify without it', async () => {
  const { faults, figures } = await withScope((scope) => runCheckpoints({ scope, say() {} }, { proofs: 20 }))
  expect(faults).toEqual([])
  expect(figures?.['proofs with a checkpoint']).toBeGreaterThanOrEqual(20)
}, 300_000)
