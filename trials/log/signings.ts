import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run log:signings -- [--count N] [--seed N] [--callers N] [--receipts N]

Asks for signatures of all kinds through two coordinators, while three witnesses die, lag, lie, fork and answer slowly. Nothing may be
released without a quorum of honest cosignatures, every entry comes to its end, and whoever was told of a failure gets no signature.
  --count N      how often a signature is asked for (default 10000)
  --seed N       of what witnesses do and callers ask for (default 1)
  --callers N    who ask side by side (default 48)
  --receipts N   how many receipts the verifier judges (default 500)
  --help         says this

Example: npm run log:signings -- --count 500 --seed 7
Exit codes: 0 all of it holds, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  {
    count: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    callers: { type: 'string', default: '48' },
    receipts: { type: 'string', default: '500' },
  },
  USAGE,
)
const [count = 0, seed = 0, callers = 0, receipts = 0] = [
  values.count,
  values.seed,
  values.callers,
  values.receipts,
].map(Number)
if (![count, callers].every((value) => value >= 1) || ![count, seed, callers, receipts].every(Number.isSafeInteger)) {
  refuseArguments('--count and --callers are numbers from 1, --seed and --receipts whole numbers.', USAGE)
}

// After the arguments are read: it takes seconds to load.
const { runSignings } = await import('./runSignings.ts')
const startedAt = performance.now()
const toSeconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
const say = (line: string) => console.log(`[${toSeconds()} s] ${line}`)
const { faults, ...report } = await runSignings({ count, seed, callers, receipts, say })
for (const line of faults) console.log(`fault: ${line}`)
console.log(JSON.stringify(report, undefined, 2))
console.log(`${report.asked} asked for, ${report.answered} signed, ${faults.length} faults (${toSeconds()} s)`)
if (faults.length > 0) process.exitCode = 1
