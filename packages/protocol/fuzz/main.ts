import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'

const USAGE = `usage: npm run fuzz:typed-data -- [--runs N] [--seed N]

Hashes random typed data (EIP-712) and compares each digest with viem's. Then breaks each in one way and expects a rejection.
  --runs N   sets of types with their values (default 20000)
  --seed N   seed of the random choices (default 1)
  --help     shows this help

Example: npm run fuzz:typed-data -- --runs 1000 --seed 7
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 20_000 })
// Imported after the arguments are read, because loading takes a while.
const { checkRandomTypedData } = await import('./randomTypedData.ts')
const startedAt = performance.now()
checkRandomTypedData({ runs, seed })
console.log(`${runs} digests equal, ${runs} broken inputs rejected, ${Math.round(performance.now() - startedAt)} ms`)
