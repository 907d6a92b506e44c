import { parseArgs } from 'node:util'
import { checkRandomTransactions } from './randomTransactions.ts'

const USAGE = `usage: npm run fuzz:sign -- [--runs N] [--seed N]

Signs random transactions and compares address, digest and signature with viem's and noble's.
  --runs N   transactions (default 20000)
  --seed N   chooses them (default 1)
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean' },
  },
})
const [runs, seed] = [Number(values.runs), Number(values.seed)]

if (values.help === true) {
  console.log(USAGE)
} else if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(seed)) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  const startedAt = performance.now()
  checkRandomTransactions({ runs, seed })
  console.log(`${runs} transactions, all equal, ${Math.round(performance.now() - startedAt)} ms`)
}
