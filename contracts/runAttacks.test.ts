import { expect, test } from 'vitest'
import { runAttacks } from './runAttacks.ts'

// Larger runs: node -C source contracts/attackLogWitness.ts.
test('LogWitness rejects every attack, accepts every honest proof and agrees with packages/log', async () => {
  const rows = await runAttacks({ count: 600, runs: 3, seed: 2 })
  expect(rows.map(({ kind }) => kind)).toEqual([
    ...['honest', 'forged', 'forked', 'truncated', 'extended', 'reordered', 'replayed', 'resized'],
  ])
  for (const { kind, isAttack, cases, accepted, differences } of rows) {
    expect({ kind, differences }).toEqual({ kind, differences: 0 })
    if (isAttack) expect({ kind, cases, accepted }).toEqual({ kind, cases: 100, accepted: 0 })
    if (kind === 'honest') expect(accepted).toBe(cases)
  }
})
