import { expect, test } from 'vitest'
import { runSituation, situations } from './runSituations.ts'

// As a table: npm run monitor:situations.
test.each(situations)('$name: headline, exit code and webhook agree', { timeout: 120_000 }, async (situation) => {
  const row = await runSituation(situation)
  expect(row).toMatchObject({ isExpected: true, exitCode: situation.exitCode })
})
