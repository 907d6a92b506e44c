import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'

const USAGE = `usage: npm run fuzz:sign -- [--runs N] [--seed N]

Signs random transactions and compares address, digest and signature with viem's and noble's. Then signs a tenth as many transactions, permits
and authorizations, and compares what they do on the local chain (EDR) with what they do in a second EVM (EthereumJS).
  --runs N   transactions (default 20000)
  --seed N   chooses them (default 1)
  --help     says this

Example: npm run fuzz:sign -- --runs 1000 --seed 7
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 20_000 })
// Loaded after the arguments are parsed, because loading takes a while.
const { checkRandomTransactions } = await import('./randomTransactions.ts')
const { compareExecutions } = await import('./randomExecutions.ts')
const startedAt = performance.now()
checkRandomTransactions({ runs, seed })
console.log(`${runs} transactions, all equal, ${Math.round(performance.now() - startedAt)} ms`)
const executions = Math.ceil(runs / 10)
const { executed, reverted, rejected } = await compareExecutions({ runs: executions, seed })
console.log(
  `${executions} transactions in two EVMs, all equal: ${executed} executed, ${reverted} reverted, ${rejected} rejected, ${Math.round(performance.now() - startedAt)} ms`,
)
