import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run webhooks -- [--count N] [--seed N]

Has the service tell sign-ins and proofs to a receiver that fails one time in five, while coordinator and workers are killed at random moments:
each is delivered at least once, nothing is told that did not happen, forged and replayed ones are refused, and nothing goes where a redirect points.
  --count N   webhooks to be delivered (default 10000)
  --seed N    of the random moments and failures (default 1)
  --help      says this

Example: npm run webhooks -- --count 500
Exit codes: 0 all of it holds, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  { count: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
  USAGE,
)
const [count, seed] = [Number(values.count), Number(values.seed)]
if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(seed)) {
  refuseArguments('--count is a number from 1, and --seed a whole number.', USAGE)
}

// After the arguments are read: it takes seconds to load.
const { runWebhooks } = await import('./runWebhooks.ts')
const startedAt = performance.now()
const toSeconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
const say = (line: string) => console.log(`[${toSeconds()} s] ${line}`)
const { faults, ...report } = await runWebhooks({ count, seed, say })
for (const line of faults.slice(0, 50)) console.log(`fault: ${line}`)
console.log(JSON.stringify(report, undefined, 2))
console.log(`${report.delivered} of ${report.causes} delivered, ${faults.length} faults (${toSeconds()} s)`)
if (faults.length > 0) process.exitCode = 1
