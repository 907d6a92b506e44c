import { toPrintable } from '@countersign/verify'
import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'
import { compareAnswer } from './compareAnswer.ts'
import { type ReceiptCase, readCases } from './readCases.ts'
import { AnswerError, ownCommand, startVerifier } from './startVerifier.ts'

const USAGE = `usage: npm run conformance:receipts -- [--only N[,N…]] [--timeout SECONDS] [-- COMMAND [ARGS…]]

Gives each numbered case of conformance/receipts to a verifier, and compares its answer with the expected one. The command reads requests
as lines of JSON and answers each with a line (conformance/receipts/README.md). Without a command, runs the TypeScript verifier.
  --only N[,N…]       only these cases
  --timeout SECONDS   the longest time for one answer (default 60)
  --help              prints this text

Example: npm run conformance:receipts -- --only 17,118 -- python3 verifier.py
Exit codes: 0 all cases passed, 1 a case failed or wasn't checked, 2 wrong arguments.`

const { values, positionals } = readArguments(
  { only: { type: 'string' }, timeout: { type: 'string', default: '60' } },
  USAGE,
  { takesPositionals: true },
)
const { cases, toRequest } = readCases()
const only = values.only?.split(',').map(Number)
const chosen = cases.filter(({ number }) => only === undefined || only.includes(number))
if (only !== undefined && chosen.length !== new Set(only).size) {
  refuseArguments(`Cases have the numbers 1 to ${cases.length}.`, USAGE)
}
const timeoutMs = Number(values.timeout) * 1000
if (!(timeoutMs > 0)) refuseArguments('The timeout is a number of seconds above 0.', USAGE)

const verifier = startVerifier(positionals.length === 0 ? ownCommand : positionals, { timeoutMs })
const tally = { passed: 0, failed: 0, unchecked: 0 }
const uncheckedSteps = new Set<string>()
let done = 0
const progress = setInterval(() => console.error(`${done} of ${chosen.length} cases …`), 10_000)
await Promise.all(chosen.map(run))
clearInterval(progress)
verifier.close()

const named = uncheckedSteps.size === 0 ? '' : ` (this verifier does not check ${[...uncheckedSteps].join(', ')})`
const left = tally.unchecked === 0 ? '' : `, ${tally.unchecked} not checked`
console.log(toPrintable(`${tally.passed} of ${chosen.length} cases passed${left}${named}`))
process.exitCode = tally.passed === chosen.length ? 0 : 1

async function run(one: ReceiptCase): Promise<void> {
  const title = `case ${one.number}, ${one.name}`
  try {
    const actual = await verifier.check(toRequest(one))
    const { result, unchecked, faults } = compareAnswer(one.expected, actual)
    tally[result] += 1
    for (const id of unchecked) uncheckedSteps.add(id)
    for (const fault of faults) console.log(toPrintable(`FAIL ${title}: ${fault}`))
    if (result === 'unchecked') console.log(`not checked: ${title}`)
  } catch (error) {
    if (!(error instanceof AnswerError)) throw error
    tally.failed += 1
    console.log(`FAIL ${title}: ${error.message}`)
  }
  done += 1
}
