import { createWriteStream } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { createRandom } from '@countersign/testing'
import { createAccounts } from '@countersign/testing/stack'
import { audit, listFaults } from '../audit.ts'
import { startLoad } from '../cluster/load.ts'
import { startCluster, startDatabase, toTopology } from '../cluster/startCluster.ts'
import { listDeaths } from '../member.ts'
import type { Table } from '../table.ts'
import { count, flag, type Outcome, seed, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { startChaos } from './chaos.ts'
import { type Growth, measureGrowth, parseInspectorUrl } from './memory.ts'

const FAILURE_RATE = 0.05
const PROOFS_TIMEOUT_MS = 120_000
const SAY_EVERY_MS = 15_000
const KILL_EVERY_MS = 2_400
const DISTURB_EVERY_MS = 9_000
/** Growth of resident memory after garbage collection, since the warm-up. */
const MAX_GROWTH = 0.1

const options = {
  minutes: count(10, 'duration; fractions are allowed', { least: 0.01, most: 1_440, isWhole: false }),
  seed: seed('chooses the faults and their times'),
  calm: flag(`no faults: fails if a process's memory after garbage collection grows by more than 10 % between
             40 % of the duration and its end`),
  rate: count(6, 'new signatures per second', { least: 0.1, most: 500, isWhole: false }),
  users: count(24, 'number of users'),
  witnesses: flag('each enclave requires a log that 3 witnesses cosign; the witnesses get faults too'),
  log: word('FILE', 'write the log lines of all processes to a file'),
}
type Options = Values<typeof options>

export const soak: Trial = {
  summary: `Runs the whole topology (PostgreSQL, 3 coordinators behind HAProxy, 2 workers, 2 enclaves) under load. Meanwhile it kills and freezes
processes, cuts off the database, and lets satellite, IPFS and chain fail one call in twenty. Then it audits all signatures that
clients received. Needs haproxy.`,
  options,
  example: '--minutes 1 --log soak.log',
  run: (deps, values: Options) => runSoak(deps, values),
}

/**
 * Runs the whole topology under load with faults, then audits all received signatures. With `calm` it measures memory instead of causing
 * faults.
 */
export async function runSoak(
  { scope, say }: TrialDeps,
  options: Options,
  { killEveryMs = KILL_EVERY_MS, disturbEveryMs = DISTURB_EVERY_MS } = {},
): Promise<Outcome> {
  const { calm: isCalm, rate, users, witnesses } = options
  const durationMs = 60_000 * options.minutes
  const inspectorUrls = new Map<string, string>()
  const file = options.log === '' ? undefined : createWriteStream(options.log)
  if (file) scope.add(file, (each) => new Promise((resolve) => each.end(() => resolve(undefined))))
  // One random stream per use, so that the choices of one don't depend on the others.
  const random = (stream: number) => createRandom(options.seed * 16 + stream)
  const accounts = createAccounts(users)
  const database = await startDatabase(scope)
  const cluster = await startCluster(scope, {
    accounts,
    databaseUrl: database.databaseUrl,
    counts: toTopology(witnesses),
    isInspected: isCalm,
    random: random(1),
    onLine(name, line) {
      const url = parseInspectorUrl(line)
      if (url !== undefined) inspectorUrls.set(name, url)
      file?.write(`${name} ${line}\n`)
    },
  })
  const outside = Object.entries(cluster.outside)
  say(`started ${cluster.members.map(({ name }) => name).join(', ')}`)
  const subjects = accounts.map(({ sub }) => sub)
  // One in 25 signatures is followed by a sign-out, one in ten is requested twice at once, and one in ten is repeated later.
  const habits = { pollRate: 3 * rate, signOutShare: 0.04, repeatShare: 0.1, random: random(2) }
  const load = await startLoad({ url: cluster.url, subjects, rate, habits })
  const progress = setInterval(() => say(load.progress()), SAY_EVERY_MS)
  scope.add(progress, async (timer) => clearInterval(timer))
  if (!isCalm) for (const [, proxy] of outside) proxy.setRate(FAILURE_RATE)
  const chaos = isCalm
    ? undefined
    : startChaos({
        members: cluster.members,
        random: random(3),
        killEveryMs,
        say,
        disturb: { ...database, everyMs: disturbEveryMs },
      })
  const watched = cluster.members.map((member) => ({ ...member, inspectorUrl: inspectorUrls.get(member.name) ?? '' }))
  const memory = isCalm ? await measureGrowth(watched, durationMs) : []
  if (!isCalm) await setTimeout(durationMs)
  await chaos?.stop()
  for (const [, proxy] of outside) proxy.setRate(0)
  say(`end of the load: ${load.progress()}`)
  const endedAt = performance.now()
  await load.finish(PROOFS_TIMEOUT_MS)
  const finishedAfterS = Math.round((performance.now() - endedAt) / 1000)
  clearInterval(progress)
  const { answered, counts, changed } = load
  const audited = await audit(cluster, answered, { say })
  const grown = memory.filter(({ early, late }) => late.resident / early.resident - 1 > MAX_GROWTH)
  return {
    faults: [
      ...listFaults(audited),
      ...changed.map((each) => `changed: ${each}`),
      ...(counts.requested > answered.length
        ? [`${counts.requested - answered.length} signatures were never answered`]
        : []),
      ...listDeaths(cluster.members),
      // Every process must run again without intervention.
      ...cluster.members.flatMap(({ name, pid }) => (pid() === undefined ? [`${name} is down`] : [])),
      ...grown.map(({ name }) => `memory of ${name} grows`),
    ],
    tables: memory.length === 0 ? [] : [toTable(memory)],
    figures: {
      ...chaos?.counts,
      answered: answered.length,
      verified: audited.verified,
      ...counts,
      finishedAfterS,
      outside: Object.fromEntries(outside.map(([name, { counts: each }]) => [name, each])),
    },
  }
}

/** Memory in MiB after the warm-up and at the end, while running and after garbage collection. */
function toTable(memory: readonly Growth[]): Table {
  return {
    head: ['Process', 'Running', 'Growth', 'After garbage collection', 'Growth'],
    rows: memory.map(({ name, early, late }) => [
      name,
      ...(['running', 'resident'] as const).flatMap((of) => [
        `${early[of].toFixed(0)} → ${late[of].toFixed(0)}`,
        `${(100 * (late[of] / early[of] - 1)).toFixed(1)} %`,
      ]),
    ]),
  }
}
