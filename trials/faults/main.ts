import { readArguments } from '../../scripts/readArguments.ts'
import type { CrashPointName } from '../../services/coordinator/test/crashPoints.ts'

const USAGE = `usage: npm run faults -- [--rounds N] [--kills N] [--witnesses] [--seed N]

Kills the coordinator and its worker while signings arrive, and audits the signatures that clients received.
  --rounds N     times that each named crash point is reached (default 5)
  --kills N      kills at random moments after that (default 200)
  --witnesses    with an enclave that has a log: its crash points too, and witnesses die as well
  --seed N       of the random moments (default 1)
  --help         says this

Example: npm run faults -- --rounds 1 --kills 10
Exit codes: 0 nothing lost, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  {
    rounds: { type: 'string', default: '5' },
    kills: { type: 'string', default: '200' },
    witnesses: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
  USAGE,
)
const [rounds, kills, seed] = [values.rounds, values.kills, values.seed].map(Number)
const isNumber = [rounds, kills, seed].every((value) => Number.isSafeInteger(value) && Number(value) >= 0)
const hasLog = values.witnesses

if (!isNumber) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  // After the arguments are read: it takes seconds to load.
  const [{ crashPoints, logCrashPoints }, { runFaults }] = await Promise.all([
    import('../../services/coordinator/test/crashPoints.ts'),
    import('./runFaults.ts'),
  ])
  const names = Object.keys({ ...crashPoints, ...(hasLog ? logCrashPoints : {}) }) as CrashPointName[]
  const points = Array.from({ length: Number(rounds) }, () => names).flat()
  const startedAt = performance.now()
  const report = await runFaults({
    points,
    randomKills: Number(kills),
    hasLog,
    seed: Number(seed),
    say: console.log,
  })
  const { lost, duplicated, invalid, unknown, changed, ...counts } = report
  const faults = { lost, duplicated, invalid, unknown, changed }
  for (const [name, list] of Object.entries(faults)) for (const line of list) console.log(`${name}: ${line}`)
  const summary = Object.entries(faults).map(([name, list]) => `${list.length} ${name}`)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  console.log(
    `${counts.kills} kills, ${counts.answered} signatures, ${counts.verified} verified, ${summary.join(', ')} (${seconds} s)`,
  )
  if (Object.values(faults).some((list) => list.length > 0)) process.exitCode = 1
}
