import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { readArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run soak -- [--minutes N] [--seed N] [--calm] [--rate N] [--users N] [--witnesses] [--log FILE]

Runs the whole topology (PostgreSQL, 3 coordinators behind a balancer, 2 workers, 2 enclaves) under load while processes are killed
and frozen, the database is cut off, and satellite, IPFS and chain fail one call in twenty; then audits the signatures that clients received.
  --minutes N   how long (default 10; parts of a minute are fine)
  --seed N      of who is hit, and when (default 1)
  --calm        no faults: measures whether memory grows from four tenths of the time to its end, at most 10 % of what is resident after
                a full collection of garbage, which every process makes at both moments
  --rate N      new signatures per second (default 6)
  --users N     who sign them (default 24)
  --witnesses   each enclave insists on a log, which 3 witnesses cosign; they are hit too
  --log FILE    what all processes write
  --help        says this

Example: npm run soak -- --minutes 1 --log soak.log
Exit codes: 0 nothing lost and memory steady, 1 otherwise, 2 wrong arguments.`

/** Of what is resident after a collection, since the warm-up. */
const MAX_GROWTH = 0.1

const toGrowth = (early: number, late: number) => late / early - 1

/** As cells of a table in Markdown. */
const toCells = (early: number, late: number) => [
  `${early.toFixed(0)} → ${late.toFixed(0)}`,
  `${(100 * toGrowth(early, late)).toFixed(1)} %`,
]

const { values } = readArguments(
  {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    calm: { type: 'boolean', default: false },
    rate: { type: 'string', default: '6' },
    users: { type: 'string', default: '24' },
    witnesses: { type: 'boolean', default: false },
    log: { type: 'string' },
  },
  USAGE,
)
const [minutes = 0, seed = 0, rate = 0, users = 0] = [values.minutes, values.seed, values.rate, values.users].map(
  Number,
)
const isValid =
  minutes > 0 && minutes <= 1440 && rate > 0 && rate <= 500 && [seed, users].every(Number.isSafeInteger) && users > 0

if (!isValid) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  // After the arguments are read: it takes seconds to load.
  const { runSoak } = await import('./runSoak.ts')
  const log = values.log === undefined ? undefined : createWriteStream(values.log)
  const startedAt = Date.now()
  const report = await runSoak({
    durationMs: 60_000 * minutes,
    seed,
    isCalm: values.calm,
    hasLog: values.witnesses,
    users,
    signRate: rate,
    killEveryMs: 2_400,
    disturbEveryMs: 9_000,
    say: (line) => console.log(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)} s  ${line}`),
    onLine: (name, line) => log?.write(`${name} ${line}\n`),
  })
  if (log) await finished(log.end())
  const { chaos, outside, counts, memory, lost, duplicated, invalid, unknown, changed, deaths } = report
  const settled = `${(report.settledMs / 1000).toFixed(1)} s`
  const kills = chaos.kills + chaos.databaseKills
  const faults = [lost, duplicated, invalid, unknown, changed, deaths]
  const found = faults.map((list) => list.length)
  const row = [kills, chaos.databaseKills, chaos.freezes, chaos.cuts, report.answered, ...found, settled]
  console.log(`
failed calls: ${Object.entries(outside)
    .map(([name, { asked, failed }]) => `${name} ${failed} of ${asked}`)
    .join(', ')}
${counts.signIns} sign-ins, ${counts.refused} tries failed, ${counts.repeats} signatures asked for again, ${counts.polls} polls; ${report.verified} proofs verified from IPFS and chain

| Kills | of PostgreSQL | Freezes | Cuts | Signatures | Lost | Duplicated | Invalid | Unknown | Changed | Died by themselves | Settled after |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| ${row.join(' | ')} |`)
  for (const each of faults.flat().slice(0, 50)) console.log(`  ${each}`)
  const hasGrown = memory.some(({ early, late }) => toGrowth(early.resident, late.resident) > MAX_GROWTH)
  if (values.calm) {
    console.log(`
MiB after the warm-up and at the end: resident as it runs, resident after a collection of all garbage, and the heap that is kept then.

| Process | As it runs | Growth | After a collection | Growth | Heap | Growth |
| --- | --- | --- | --- | --- | --- | --- |`)
    for (const { name, early, late } of memory) {
      const pairs = (['running', 'resident', 'heap'] as const).flatMap((of) => toCells(early[of], late[of]))
      console.log(`| ${[name, ...pairs].join(' | ')} |`)
    }
  }
  // Said outright: once Node never came to the end of its own cleaning up, with the chain's machine code in its process.
  process.exit(faults.some((list) => list.length > 0) || hasGrown ? 1 : 0)
}
