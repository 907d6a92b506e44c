import { withScope } from '@countersign/testing/stack'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Outcome } from '../trial.ts'
import { runSecurity } from './runSecurity.ts'

// In smaller sizes, without restarts and timing. The full attacks: npm run security.
const NAMES = [
  ...(['abuse-matrix', 'header-floods', 'open-redirect', 'log-injection', 'slug-timing'] as const),
  ...(['oversized-bodies', 'slow-connections', 'event-streams', 'cookie-tossing'] as const),
  ...(['vault-stolen-session', 'vault-own-coordinator', 'vault-second-enclave', 'sessions'] as const),
]

describe('attacks on a running backend', () => {
  let outcome: Outcome = { faults: [] }
  beforeAll(async () => {
    const options = { only: NAMES, seed: 1, short: true, json: '' }
    outcome = await withScope((scope) => runSecurity({ scope, say() {} }, options))
  }, 240_000)

  test.each(NAMES)('%s finds no fault', (name) => {
    const [, tried] = outcome.tables?.[0]?.rows[NAMES.indexOf(name)] ?? []
    expect(outcome.faults).toEqual([])
    expect(tried).toBeGreaterThan(0)
  })
})
