import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'
import { checkRandomSpends } from './randomSpends.ts'

const USAGE = `usage: npm run fuzz:budgets -- [--runs N] [--seed N]

Plays random histories of vaults with budgets: payments at the limits, several budgets of one asset, and a clock that goes back. Compares each
answer with a model that keeps every payment, and adds up what was signed: never more than a limit in a window.
  --runs N   histories (default 1000000)
  --seed N   seed of the random choices (default 1)
  --help     shows this help

Example: npm run fuzz:budgets -- --runs 10000 --seed 7
Exit codes: 0 no overspend and all answers equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 1_000_000 })
const startedAt = performance.now()
const { signed, refused, full } = checkRandomSpends({ runs, seed })
const ms = Math.round(performance.now() - startedAt)
console.log(
  `seed ${seed}: ${runs} histories, ${signed} payments signed, ${refused} refused, ${full} windows used up, 0 overspends; ${ms} ms`,
)
