import { readRunsAndSeed } from '../../scripts/readRunsAndSeed.ts'

const USAGE = `usage: npm run fuzz -- [--runs N] [--seed N]

Feeds random and mutated bytes to every parser of the verifier, and other members into receipts: each must answer or throw a typed error.
  --runs N   inputs in all, shared among the parsers (default 100000)
  --seed N   chooses the inputs (default 1)
  --help     says this

Example: npm run fuzz -- --runs 1000 --seed 7
Exit codes: 0 no untyped error, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 100_000 })
// After the arguments are read: it takes a while to load.
const [{ createSubjects }, { fuzz }] = await Promise.all([import('./createSubjects.ts'), import('./fuzz.ts')])
const subjects = await createSubjects()
const share = Math.ceil(runs / subjects.length)
let failed = 0
for (const subject of subjects) {
  const start = performance.now()
  try {
    await fuzz(subject, { runs: share, seed })
    console.log(
      `${subject.name.padEnd(22)} ${share} inputs, no untyped error, ${Math.round(performance.now() - start)} ms`,
    )
  } catch (error) {
    failed += 1
    console.log(`${subject.name.padEnd(22)} FAILED: ${error instanceof Error ? error.message : String(error)}`)
  }
}
const peak = Math.round(process.resourceUsage().maxRSS / 1024)
console.log(`${share * subjects.length} inputs: ${failed} parsers failed; peak memory ${peak} MiB`)
process.exitCode = failed === 0 ? 0 : 1
