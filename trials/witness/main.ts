import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run witness:kills -- [--kills N] [--seed N]

Kills a witness at random moments while two histories of one log are offered to it; it must never cosign both, nor forget what it cosigned.
  --kills N   how often (default 1000)
  --seed N    of the random moments (default 1)
  --help      says this

Example: npm run witness:kills -- --kills 50
Exit codes: 0 one history, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  { kills: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
  USAGE,
)
const [kills, seed] = [Number(values.kills), Number(values.seed)]
if (!Number.isSafeInteger(kills) || kills < 1 || !Number.isSafeInteger(seed)) {
  refuseArguments('--kills is a number from 1, and --seed a whole number.', USAGE)
}

// After the arguments are read: it takes a second to load.
const { runKills } = await import('./runKills.ts')
const startedAt = performance.now()
const { both, lost, ...counts } = await runKills({ kills, seed, say: console.log })
for (const line of both) console.log(`two histories: ${line}`)
for (const line of lost) console.log(`lost: ${line}`)
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
console.log(
  `${counts.kills} kills, ${counts.cosigned} cosignatures; recorded after ${counts.recorded}, not after ${counts.unrecorded}; ${both.length} sizes with two roots, ${lost.length} lost (${seconds} s)`,
)
if (both.length > 0 || lost.length > 0) process.exitCode = 1
