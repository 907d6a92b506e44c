import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'

const USAGE = `usage: npm run fuzz:vault -- [--runs N] [--seed N]

Requests payments above the amount that needs no approval from a vault, with a valid session and with tampered approvals, rules, keys
and transactions. None may be signed.
  --runs N   tries (default 10000)
  --seed N   chooses them (default 1)
  --help     prints this help

Example: npm run fuzz:vault -- --runs 300 --seed 7

Exit codes: 0 none was signed, 1 otherwise, 2 invalid arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 10_000 })
// Loaded after the arguments are parsed, because loading takes a while.
const { tryVaults } = await import('./randomVaults.ts')
const startedAt = performance.now()
const { tries, signed, errors } = tryVaults({ runs, seed })
const refusals = [...errors].map(([error, count]) => `${count} ${error}`).join(', ')
console.log(`${tries} tries, ${signed} signed; ${refusals}; ${Math.round(performance.now() - startedAt)} ms`)
if (signed > 0) process.exitCode = 1
