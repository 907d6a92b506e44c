import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toPrintable } from '@countersign/verify'
import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'
import { compareVerifiers } from './compareVerifiers.ts'
import { ownCommand, pythonCommand } from './startVerifier.ts'

const USAGE = `usage: npm run differential -- [--count N] [--seed N] [--only INDEX] [-- COMMAND [ARGS…]]

Creates receipts with the simulator, changes each at random, and passes it to two verifiers: the TypeScript verifier and COMMAND (default:
the Python verifier). Compares verdict, first failing step and code, and prints how often each result occurred.
  --count N      receipts (default 1000)
  --seed N       seed of the random choices (default 1)
  --only INDEX   only the receipt with this index, from 0, with both answers
  --help         prints this text

Control-C ends a run early and prints its results.

Example: npm run differential -- --count 2000 --seed 7
Exit codes: 0 all equal, 1 some differ, 2 wrong arguments.`

const { values, positionals } = readArguments(
  { count: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' }, only: { type: 'string' } },
  USAGE,
  { takesPositionals: true },
)
const [count, seed, only] = [values.count, values.seed, values.only ?? '0'].map(Number) as [number, number, number]
if (![count, seed, only].every((value) => Number.isSafeInteger(value) && value >= 0)) {
  refuseArguments('Count, seed and index are whole numbers from 0.', USAGE)
}
const isOne = values.only !== undefined
const folder = join(tmpdir(), 'countersign-differential')
const startedAt = performance.now()
const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())
const { outcomes, differences, unchecked } = await compareVerifiers({
  commands: [ownCommand, positionals.length === 0 ? pythonCommand : positionals],
  seed,
  signal: interrupted.signal,
  indices: isOne ? [only] : Array.from({ length: count }, (_, index) => index),
  onProgress: (done) =>
    console.error(`${done} of ${count} receipts, ${Math.round((performance.now() - startedAt) / 1000)} s`),
  onDifference({ index, request, answers }) {
    mkdirSync(folder, { recursive: true })
    const file = join(folder, `${seed}-${index}.json`)
    writeFileSync(file, `${JSON.stringify({ seed, index, request, answers }, undefined, 1)}\n`)
    console.log(toPrintable(`DIFFER ${index}: ${answers.join(' / ')} (${file})`))
  },
  ...(isOne && { onAnswers: (answers: readonly string[]) => console.log(answers.map(toPrintable).join('\n')) }),
})
for (const [outcome, times] of [...outcomes].toSorted((one, other) => other[1] - one[1])) {
  console.log(`${String(times).padStart(7)}  ${outcome}`)
}
const total = [...outcomes.values()].reduce((sum, times) => sum + times, 0)
const note = unchecked === 0 ? '' : `, ${unchecked} not compared because a verifier did not check the failing step`
console.log(
  `seed ${seed}: ${total} receipts, ${differences} differences${note}, ${Math.round((performance.now() - startedAt) / 1000)} s`,
)
process.exitCode = differences === 0 ? 0 : 1
