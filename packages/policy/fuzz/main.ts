import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'
import { compareApprovals } from './randomApprovals.ts'
import { checkRandomHistories } from './randomHistories.ts'
import { checkRandomPolicies } from './randomPolicies.ts'

const USAGE = `usage: npm run fuzz:policy -- [--runs N] [--seed N]

Asks random policies about random requests, and compares each verdict with that of a second evaluator; spoils each policy in one way,
which must be refused. Then plays a tenth as many histories of scheduled vaults on a model of chains: no more may run than the
schedule says. Then checks a tenth as many approvals, valid and faulty, with our verifier and with the one of @simplewebauthn/server: ours may
accept none that the other rejects.
  --runs N   policies, each with a request (default 100000)
  --seed N   chooses them (default 1)
  --help     says this

Example: npm run fuzz:policy -- --runs 1000 --seed 7
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 100_000 })
const startedAt = performance.now()
const { free, approved, refused } = checkRandomPolicies({ runs, seed })
console.log(
  `${runs} verdicts, all equal: ${free} without approval, ${approved} with, ${refused} refused; ${runs} policies refused`,
)
const histories = Math.ceil(runs / 10)
const { signed, executed, full } = checkRandomHistories({ runs: histories, seed })
console.log(
  `${histories} histories: ${signed} signed, ${executed} executed, ${full} times as many as allowed, never more`,
)
const { accepted, stricter, rejected } = await compareApprovals({ runs: histories, seed })
console.log(
  `${histories} approvals: ${accepted} accepted by both verifiers, ${stricter} only by the other, ${rejected} by none, 0 only by ours`,
)
console.log(`${Math.round(performance.now() - startedAt)} ms`)
