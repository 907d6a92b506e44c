import { readArguments } from '../../scripts/readArguments.ts'
import type { LifeCommand } from './commands.ts'
import type { LifeCounts } from './runSequence.ts'

const USAGE = `usage: npm run life -- [--runs N] [--commands N] [--seed N]

Lives of proofs as random commands of workers, chain, pin service and clock; the invariants are checked after each.
  --runs N       sequences (default 1000)
  --commands N   commands of each (default 50)
  --seed N       (default: by chance; it is printed)
  --help         says this

Example: npm run life -- --runs 100 --seed 7
Exit codes: 0 no invariant broken, 1 otherwise, 2 wrong arguments.`

const PROGRESS = 50

const { values } = readArguments(
  {
    runs: { type: 'string', default: '1000' },
    commands: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
  USAGE,
)
const [runs, length, seed] = [values.runs, values.commands, values.seed].map(Number) as [number, number, number]
const isNumber = [runs, length, seed].every((value) => Number.isSafeInteger(value) && value >= 0)

if (!isNumber) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  // After the arguments are read: it takes seconds to load.
  const [{ default: fc }, { createLifeCommands, describeLife }, { openLife }] = await Promise.all([
    import('fast-check'),
    import('./commands.ts'),
    import('./life.ts'),
  ])
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
