import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run log:kills -- [--rounds N] [--only WORD]

Kills enclave, coordinator and witnesses at each named step of a signature with a log, starts them again, and goes on signing. There is
one history, and nothing that was answered is lost or answered in another way.
  --rounds N    times that each step is reached (default 5)
  --only WORD   the steps with this word in their names
  --help        says this

Example: npm run log:kills -- --rounds 1 --only witness
Exit codes: 0 all of it holds, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments({ rounds: { type: 'string', default: '5' }, only: { type: 'string' } }, USAGE)
const rounds = Number(values.rounds)
if (!Number.isSafeInteger(rounds) || rounds < 1) refuseArguments('--rounds is a number from 1.', USAGE)

// After the arguments are read: it takes seconds to load.
const { killPoints, runKills } = await import('./runKills.ts')
const names = (Object.keys(killPoints) as (keyof typeof killPoints)[]).filter((name) =>
  name.includes(values.only ?? ''),
)
if (names.length === 0) refuseArguments(`--only: no step has ${values.only} in its name.`, USAGE)
const startedAt = performance.now()
const toSeconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
const say = (line: string) => console.log(`[${toSeconds()} s] ${line}`)
const { faults, ...report } = await runKills({ points: Array.from({ length: rounds }, () => names).flat(), say })
for (const line of faults) console.log(`fault: ${line}`)
console.log(JSON.stringify(report, undefined, 2))
console.log(`${report.kills} kills, ${report.answered} signatures, ${faults.length} faults (${toSeconds()} s)`)
if (faults.length > 0) process.exitCode = 1
