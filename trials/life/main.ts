import fc from 'fast-check'
import { readArguments } from '../../scripts/readArguments.ts'
import { createLifeCommands, describeLife, type LifeCommand } from './commands.ts'
import { openLife } from './life.ts'
import type { LifeCounts } from './runSequence.ts'

const USAGE = `usage: npm run life -- [--runs N] [--commands N] [--seed N]

Lives of proofs as random commands of workers, chain, pin service and clock; the invariants are checked after each.
  --runs N       sequences (default 1000)
  --commands N   commands of each (default 50)
  --seed N       (default: by chance; it is printed)`

const PROGRESS = 50

const values = readArguments(
  {
    runs: { type: 'string', default: '1000' },
    commands: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: 'boolean' },
  },
  USAGE,
)
const [runs, length, seed] = [values.runs, values.commands, values.seed].map(Number) as [number, number, number]
const isNumber = [runs, length, seed].every((value) => Number.isSafeInteger(value) && value >= 0)

if (values.help === true) {
  console.log(USAGE)
} else if (!isNumber) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  console.log(`seed ${seed}: ${runs} sequences of ${length} commands`)
  const counts: LifeCounts = {}
  const startedAt = performance.now()
  const toSeconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
  const life = await openLife()
  let done = 0
  async function live(commands: LifeCommand[]) {
    await life.run(commands, counts)
    done += 1
    if (done % PROGRESS === 0) console.log(`${done} sequences (${toSeconds()} s)`)
  }
  const outcome = await fc.check(fc.asyncProperty(createLifeCommands(length), live), { seed, numRuns: runs })
  await life.stop()
  for (const [what, count] of Object.entries(counts).sort()) console.log(`${String(count).padStart(8)}  ${what}`)
  if (outcome.failed) {
    console.log(`failed after ${outcome.numRuns} sequences and ${outcome.numShrinks} shrinks (${toSeconds()} s)`)
    console.log(`replay: seed ${outcome.seed}, path ${outcome.counterexamplePath}`)
    console.log(describeLife(outcome.counterexample?.[0] ?? []))
    console.log(outcome.errorInstance instanceof Error ? outcome.errorInstance.stack : outcome.errorInstance)
    process.exitCode = 1
  } else {
    console.log(`${outcome.numRuns} sequences, no invariant broken (${toSeconds()} s)`)
  }
}
