// Runs the Solidity tests: node -C source contracts/testSolidity.ts [part of a test's name]

import { withHardhat } from './withHardhat.ts'

type TestRun = { success: boolean; value?: { suiteResults: { testResults: unknown[] }[] } }

const [grep] = process.argv.slice(2)

process.exitCode = await withHardhat(async (hardhat) => {
  const run: TestRun = await hardhat.tasks.getTask(['test', 'solidity']).run(grep === undefined ? {} : { grep })
  // Finding no tests is a failure.
  const count = run.value?.suiteResults.flatMap(({ testResults }) => testResults).length ?? 0
  return run.success && count > 0 ? 0 : 1
})
