import { readArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run monitor:situations

Runs the monitor in twelve situations, each as a separate process, and prints its headline, exit code and webhook as a table.
  --help   prints this text

Example: npm run monitor:situations
Exit codes: 0 every row is as expected, 1 otherwise, 2 wrong arguments.`

readArguments({}, USAGE)

// After the arguments are read: it takes a second to load.
const { formatRows, runSituation, situations } = await import('./runSituations.ts')
const rows = []
for (const situation of situations) rows.push(await runSituation(situation))
console.log(formatRows(rows))
if (!rows.every(({ isExpected }) => isExpected)) process.exitCode = 1
