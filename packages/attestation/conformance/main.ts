import { readArguments, refuseArguments } from '../../../scripts/readArguments.ts'
import { type CaseOutcome, runCases } from './runCases.ts'

const USAGE = `usage: npm run conformance -- DIR [--verbose]

Runs every case of DIR/cases.json against the verifier, prints a line per failure and ends with "N passed, M failed".
  --verbose   a line for every case, with the reason of each rejection
  --help      says this

Example: npm run conformance -- ../fixtures --verbose
Exit codes: 0 all cases as expected, 1 some are not, 2 the set could not be read.`

const { values, positionals } = readArguments({ verbose: { type: 'boolean' } }, USAGE, { takesPositionals: true })
const [directory, ...rest] = positionals
if (directory === undefined || rest.length > 0) refuseArguments('Name one folder.', USAGE)

try {
  report(await runCases(directory))
} catch (error) {
  console.error(`cannot run ${directory}: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 2
}

function report(outcomes: CaseOutcome[]) {
  for (const { id, expected, actual, faults, unknown } of outcomes) {
    for (const fault of faults) console.log(`FAIL ${id}: expected ${expected}; ${fault}`)
    if (values.verbose === true && faults.length === 0) console.log(`ok   ${id}: expected ${expected}; ${actual}`)
    for (const what of unknown) console.log(`note ${id}: ${what} is unknown to this runner`)
  }
  const failed = outcomes.filter(({ faults }) => faults.length > 0).length
  console.log(`${outcomes.length - failed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
