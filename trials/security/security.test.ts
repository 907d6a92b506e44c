import { withScope } from '@countersign/testing/stack'
import { expect, test } from 'vitest'
import { attackNames } from '../trials.ts'
import { runSecurity } from './runSecurity.ts'

// Those that restart the backend take longer: npm run security.
const SHORT = attackNames.filter((name) => name !== 'vault-old-database' && name !== 'rate-limits')

// Fewer of everything, on one backend that is not restarted, and no judgement of times.
test('attacks on a running backend find no fault', async () => {
  const options = { only: SHORT, seed: 1, short: true, json: '' }
  const { faults, tables } = await withScope((scope) => runSecurity({ scope, say() {} }, options))
  expect(faults).toEqual([])
  expect(tables?.[0]?.rows).toHaveLength(SHORT.length)
  for (const [name, tried] of tables?.[0]?.rows ?? []) expect(tried, String(name)).toBeGreaterThan(0)
}, 240_000)
