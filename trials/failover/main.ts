import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'
import { parseParts, parts } from './parts.ts'

const USAGE = `usage: npm run failover -- [--parts NAME,NAME] [--rounds N] [--rate N] [--mode sync|async] [--lag MS] [--outage MS]

Starts PostgreSQL with a standby and TLS required, two coordinators behind HAProxy with the file that is deployed, a worker and an enclave.
Under load it kills the primary and promotes the standby, reloads HAProxy, and restarts it; it takes backups and restores them into an
empty database and an empty server; then it looks for everything that was answered.
  --parts …    some of ${parts.join(', ')} (default all)
  --rounds N   times that each of these happens (default 5)
  --rate N     signatures a second (default 30)
  --mode MODE  sync: a commit waits for the standby; async: it does not (default sync)
  --lag MS     for so long before its primary dies, the standby gets nothing (default 0)
  --outage MS  from the death of the primary until the standby is promoted (default 0)
  --log        prints the lines of all processes too
  --help       says this

It needs haproxy, and PostgreSQL with its tools in /usr/lib/postgresql.

Example: npm run failover -- --rounds 1 --mode async --lag 500
Exit codes: 0 no fault, 1 faults, 2 wrong arguments or a program is missing.`

const { values } = readArguments(
  {
    parts: { type: 'string', default: parts.join() },
    rounds: { type: 'string', default: '5' },
    rate: { type: 'string', default: '30' },
    mode: { type: 'string', default: 'sync' },
    lag: { type: 'string', default: '0' },
    outage: { type: 'string', default: '0' },
    log: { type: 'boolean', default: false },
  },
  USAGE,
)

function toCount(name: 'rounds' | 'rate' | 'lag' | 'outage', least: number, most: number): number {
  const count = Number(values[name])
  if (Number.isSafeInteger(count) && count >= least && count <= most) return count
  return refuseArguments(`--${name}: expected a number from ${least} to ${most}`, USAGE)
}

function toMode(): 'sync' | 'async' {
  const { mode } = values
  if (mode === 'sync' || mode === 'async') return mode
  return refuseArguments('--mode: expected sync or async', USAGE)
}

const parameters = {
  parts: parseParts(values.parts) ?? refuseArguments(`--parts: expected some of ${parts.join()}`, USAGE),
  rounds: toCount('rounds', 1, 100),
  rate: toCount('rate', 1, 500),
  lagMs: toCount('lag', 0, 60_000),
  outageMs: toCount('outage', 0, 60_000),
  mode: toMode(),
}
// After the arguments are read: it takes seconds to load.
const [{ runFailover }, { findProgram }, { findPostgres }] = await Promise.all([
  import('./runFailover.ts'),
  import('@countersign/testing'),
  import('./postgresPair.ts'),
])
const [haproxy, native] = [findProgram('haproxy'), await findPostgres()]
if (haproxy === undefined || native === undefined) {
  console.error('haproxy, or PostgreSQL with its tools in /usr/lib/postgresql, is not here.')
  process.exitCode = 2
} else {
  console.log(`${haproxy}, ${native}, ${parameters.mode}`)
  const report = await runFailover({
    ...parameters,
    haproxy,
    native,
    say: (line) => console.log(line),
    onLine: (name, line) => void (values.log && console.log(`${name}: ${line}`)),
  })
  console.log('\n| What | Times | Answered and lost | Longest pause | Median pause | Failed tries |')
  console.log('| --- | --- | --- | --- | --- | --- |')
  for (const [what, events] of Map.groupBy(report.events, (event) => event.what)) {
    const pauses = events.map(({ pauseMs }) => pauseMs).sort((one, other) => one - other)
    const lost = events.reduce((sum, event) => sum + event.lost, 0)
    const failed = new Map<string, number>()
    for (const { reason, count } of events.flatMap(({ failures }) => failures)) {
      failed.set(reason, (failed.get(reason) ?? 0) + count)
    }
    const text = [...failed].map(([reason, count]) => `${count} × ${reason}`).join(', ') || 'none'
    const middle = pauses[Math.floor(pauses.length / 2)] ?? 0
    const cells = [what, events.length, lost, `${Math.round(pauses.at(-1) ?? 0)} ms`, `${Math.round(middle)} ms`, text]
    console.log(`| ${cells.join(' | ')} |`)
  }
  const { asked, answered, changed, audit } = report
  console.log(
    `\n${answered} of ${asked} answered, ${audit.verified} found on chain and IPFS, ${changed.length} answered otherwise later, ` +
      `${audit.lost.length} proofs not complete, ${audit.duplicated.length} published twice, ${audit.unknown.length} events that nobody knows`,
  )
  for (const fault of report.faults) console.error(`fault: ${fault}`)
  process.exitCode = report.faults.length > 0 ? 1 : 0
}
