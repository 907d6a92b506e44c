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
const SETTLE_MS = 120_000
const SAY_EVERY_MS = 15_000
const KILL_EVERY_MS = 2_400
const DISTURB_EVERY_MS = 9_000
/** Of what is resident after a collection, since the warm-up. */
const MAX_GROWTH = 0.1

const options = {
  minutes: count(10, 'how long; parts of a minute are fine', { least: 0.01, most: 1_440, isWhole: false }),
  seed: seed('of who is hit, and when'),
  calm: flag(`no faults: measures whether memory grows from four tenths of the time to its end, at most 10 % of what is resident after
             a full collection of garbage, which every process makes at both moments`),
  rate: count(6, 'new signatures per second', { least: 0.1, most: 500, isWhole: false }),
  users: count(24, 'who sign them'),
  witnesses: flag('each enclave insists on a log, which 3 witnesses cosign; they are hit too'),
  log: word('FILE', 'what all processes write'),
}
type Options = Values<typeof options>

export const soak: Trial = {
  summary: `Runs the whole topology (PostgreSQL, 3 coordinators behind HAProxy, 2 workers, 2 enclaves) under load while processes are killed
and frozen, the database is cut off, and satellite, IPFS and chain fail one call in twenty; then audits the signatures that clients received. Needs haproxy.`,
  options,
  example: '--minutes 1 --log soak.log',
  run: (deps, values: Options) => runSoak(deps, values),
}

/** Load and chaos on the whole topology, then an audit of all signatures that clients received. Calm, it measures memory instead. */
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
  // Each has its own, so that what one decides does not depend on how often another was asked.
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
  // One in 25 signatures ends with a sign-out, one in ten is asked for twice at once, and one in ten again.
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
  say(`the end of the load: ${load.progress()}`)
  const endedAt = performance.now()
  await load.finish(SETTLE_MS)
  const settledS = Math.round((performance.now() - endedAt) / 1000)
  clearInterval(progress)
  const { answered, counts, changed } = load
  const audited = await audit(cluster, answered, { say })
  const grown = memory.filter(({ early, late }) => late.resident / early.resident - 1 > MAX_GROWTH)
  return {
    faults: [
      ...listFaults(audited),
      ...changed.map((each) => `changed: ${each}`),
      ...(counts.asked > answered.length ? [`${counts.asked - answered.length} signatures were never answered`] : []),
      ...listDeaths(cluster.members),
      // A restart must need no hand.
      ...cluster.members.flatMap(({ name, pid }) => (pid() === undefined ? [`${name} is down`] : [])),
      ...grown.map(({ name }) => `the memory of ${name} grows`),
    ],
    tables: memory.length === 0 ? [] : [toTable(memory)],
    figures: {
      ...chaos?.counts,
      answered: answered.length,
      verified: audited.verified,
      ...counts,
      settledS,
      outside: Object.fromEntries(outside.map(([name, { counts: each }]) => [name, each])),
    },
  }
}

/** MiB after the warm-up and at the end: resident as it runs, and after a collection of all garbage. */
function toTable(memory: readonly Growth[]): Table {
  return {
    head: ['Process', 'As it runs', 'Growth', 'After a collection', 'Growth'],
    rows: memory.map(({ name, early, late }) => [
      name,
      ...(['running', 'resident'] as const).flatMap((of) => [
        `${early[of].toFixed(0)} → ${late[of].toFixed(0)}`,
        `${(100 * (late[of] / early[of] - 1)).toFixed(1)} %`,
      ]),
    ]),
  }
}
