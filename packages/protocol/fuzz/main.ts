import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'

const USAGE = `usage: npm run fuzz:typed-data -- [--runs N] [--seed N]

Hashes random typed data (EIP-712) and compares each digest with viem's; then spoils each in one way, which must be refused.
  --runs N   sets of types with their values (default 20000)
  --seed N   chooses them (default 1)
  --help     says this

Example: npm run fuzz:typed-data -- --runs 1000 --seed 7
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 20_000 })
// After the arguments are read: it takes a while to load.
const { checkRandomTypedData } = await import('./randomTypedData.ts')
const startedAt = performance.now()
checkRandomTypedData({ runs, seed })
console.log(`${runs} digests, all equal, and ${runs} refusals, ${Math.round(performance.now() - startedAt)} ms`)
