import { readRunsAndSeed } from '../../../scripts/readRunsAndSeed.ts'
import { compareApprovals } from './randomApprovals.ts'
import { checkRandomHistories } from './randomHistories.ts'
import { checkRandomPolicies } from './randomPolicies.ts'

const USAGE = `usage: npm run fuzz:policy -- [--runs N] [--seed N]

Evaluates random policies and requests, and compares each verdict with a second evaluator's. Breaks each policy in one way, and expects a
rejection. Then plays a tenth as many histories of scheduled vaults on a model of chains, where no more transactions may run than the
schedule allows. Then checks a tenth as many approvals, valid and faulty, with our verifier and with the one of @simplewebauthn/server:
ours must not accept any that the other rejects.
  --runs N   policies, each with a request (default 100000)
  --seed N   seed of the random choices (default 1)
  --help     shows this help

Example: npm run fuzz:policy -- --runs 1000 --seed 7
Exit codes: 0 all equal, 1 otherwise, 2 wrong arguments.`

const { runs, seed } = readRunsAndSeed(USAGE, { defaultRuns: 100_000 })
const startedAt = performance.now()
const { free, approved, refused } = checkRandomPolicies({ runs, seed })
console.log(
  `${runs} verdicts equal: ${free} without approval, ${approved} with approval, ${refused} refused; ${runs} broken policies rejected`,
)
const histories = Math.ceil(runs / 10)
const { signed, executed, full } = checkRandomHistories({ runs: histories, seed })
console.log(
  `${histories} histories: ${signed} signed, ${executed} executed, ${full} reached the limit, none exceeded it`,
)
const { accepted, stricter, rejected } = await compareApprovals({ runs: histories, seed })
console.log(
  `${histories} approvals: ${accepted} accepted by both verifiers, ${stricter} only by the other, ${rejected} by neither, 0 only by ours`,
)
console.log(`${Math.round(performance.now() - startedAt)} ms`)
