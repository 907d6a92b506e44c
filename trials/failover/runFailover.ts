import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findFreePorts } from '@countersign/testing'
import { toPath } from '@countersign/testing/launcher'
import { createAccounts, median, type Scope } from '@countersign/testing/stack'
import { audit, listFaults } from '../audit.ts'
import { createAuthority, trust } from '../cluster/authority.ts'
import { replaceAll, startHaproxy } from '../cluster/haproxy.ts'
import { type Load, startLoad } from '../cluster/load.ts'
import { findHaproxy, startCluster } from '../cluster/startCluster.ts'
import { listDeaths } from '../member.ts'
import type { Table } from '../table.ts'
import {
  choices,
  count,
  flag,
  type Outcome,
  type Trial,
  type TrialDeps,
  type Values,
  WrongArgumentError,
  word,
} from '../trial.ts'
import { until } from '../until.ts'
import { findPostgres, type PostgresPair, startPostgresPair } from './postgresPair.ts'
import { restoreBackups } from './restoreBackups.ts'

type Event = {
  what: 'PostgreSQL failover' | 'HAProxy reload' | 'HAProxy restart'
  /** Time from the last successful answer before the event to the first one after it. */
  pauseMs: number
  /** Failed attempts by reason. */
  failures: [reason: string, count: number][]
  /** Signatures that were answered before the event and are missing from the database after it. */
  lost: number
}

const USERS = 8
const BEFORE_MS = 3_000
const AFTER_MS = 3_000
const SETTLE_MS = 120_000
const VERIFIED_OF = 8
const counts = { coordinator: 2, worker: 1, enclave: 1, witness: 0 }

const options = {
  parts: choices('NAME,NAME', ['database', 'balancer', 'backups'], 'parts to run'),
  rounds: count(5, 'times that each part runs', { most: 100 }),
  rate: count(30, 'signatures per second', { most: 500 }),
  mode: {
    ...word('MODE', "sync: commits wait for the standby; async: they don't (default sync)"),
    default: 'sync',
  },
  lag: count(0, 'milliseconds without replication before the primary is killed', {
    least: 0,
    most: 60_000,
  }),
  outage: count(0, "milliseconds between the primary's death and the promotion", { least: 0, most: 60_000 }),
  log: flag('print the log lines of all processes'),
}
type Options = Values<typeof options>

export const failover: Trial = {
  summary: `Starts PostgreSQL with a standby and required TLS, two coordinators behind HAProxy with the deployed configuration, a worker and an
enclave. Under load it kills the primary and promotes the standby, reloads and restarts HAProxy, takes backups, and restores them into
an empty database and an empty server. Then it checks that every answered signature is still there. Needs haproxy, and PostgreSQL with
its tools in /usr/lib/postgresql.`,
  options,
  example: '--rounds 1 --mode async --lag 500',
  run: runFailover,
}

/** Fails over PostgreSQL and reloads and restarts the balancer under load, then checks that every answered signature is still there. */
export async function runFailover({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { parts, rounds, rate, mode, lag, outage } = options
  const [haproxy, native] = [findHaproxy(), await findPostgres()]
  if (mode !== 'sync' && mode !== 'async')
    throw new WrongArgumentError(`invalid --mode ${mode}: expected sync or async`)
  if (native === undefined) {
    throw new WrongArgumentError('PostgreSQL with its tools is not installed in /usr/lib/postgresql')
  }
  say(`${haproxy}, ${native}, ${mode}`)
  const onLine = (name: string, line: string) => void (options.log && say(`${name}: ${line}`))
  const folder = await scope.createFolder()
  const authority = await createAuthority(folder)
  trust(authority)
  const pair = await startPostgresPair(scope, { native, authority, mode })
  const databasePort = await startDatabaseBalancer(scope, { haproxy, folder, pair, onLine })
  const accounts = createAccounts(USERS)
  const databaseUrl = pair.toUrl(databasePort)
  const cluster = await startCluster(scope, { accounts, databaseUrl, counts, onLine })
  const { proxy } = cluster
  const isTlsRequired = await pair.rejectsPlain()
  const load = await startLoad({ url: cluster.url, subjects: accounts.map(({ sub }) => sub), rate })
  const observed = { load, pair, lost: new Set<string>() }
  const events: Event[] = []
  const cause = async (what: Event['what'], act: () => Promise<void>) => {
    await wait(BEFORE_MS)
    const event = await observe(observed, what, act)
    events.push(event)
    say(describe(event))
  }

  for (let round = 1; parts.includes('database') && round <= rounds; round++) {
    await cause('PostgreSQL failover', async () => {
      if (lag > 0) {
        pair.cut()
        await wait(lag)
      }
      await pair.kill()
      await wait(outage)
      await pair.promote()
    })
    await pair.rejoin()
  }
  for (let round = 1; parts.includes('balancer') && round <= rounds; round++) {
    await cause('HAProxy reload', () => proxy.reload())
    await cause('HAProxy restart', () => proxy.restart())
  }
  const backups: string[] = []
  if (parts.includes('backups')) {
    await wait(BEFORE_MS)
    // A failed restore must not suppress the report of the run.
    const found = await restoreBackups(pair, { folder, say }).catch((error: Error) => [error.message])
    backups.push(...found.map((fault) => `backups: ${fault}`))
  }
  await load.finish(SETTLE_MS)
  const { answered } = load
  say(`${answered.length} of ${load.counts.requested} signatures answered`)
  const changed = await load.repeatAll()
  const audited = await audit(cluster, answered, { say, verifyOneIn: VERIFIED_OF })
  const lost = events.reduce((sum, event) => sum + event.lost, 0)
  // In async mode a failover may lose answered signatures: the figures report them, but they aren't faults.
  const ofSync = [
    ...(lost > 0 ? [`${lost} answered signatures were lost`] : []),
    ...changed.map((each) => `answer changed: ${each}`),
    ...listFaults({ ...audited, invalid: [] }),
  ]
  return {
    faults: [
      ...(isTlsRequired ? [] : ['PostgreSQL accepted a connection without TLS']),
      ...(answered.length < load.counts.requested
        ? [`${load.counts.requested - answered.length} signatures were never answered`]
        : []),
      ...listDeaths(cluster.members),
      ...backups,
      ...audited.invalid,
      ...(mode === 'sync' ? ofSync : []),
    ],
    tables: [toTable(events)],
    figures: {
      requested: load.counts.requested,
      answered: answered.length,
      verified: audited.verified,
      changed: changed.length,
      incomplete: audited.lost.length,
      twice: audited.duplicated.length,
      unknown: audited.unknown.length,
    },
  }
}

function toTable(events: readonly Event[]): Table {
  return {
    head: ['What', 'Times', 'Lost answers', 'Longest pause', 'Median pause', 'Failed attempts'],
    rows: [...Map.groupBy(events, ({ what }) => what)].map(([what, all]) => {
      const pauses = all.map(({ pauseMs }) => pauseMs)
      const reasons = Map.groupBy(
        all.flatMap(({ failures }) => failures),
        ([reason]) => reason,
      )
      const failed = [...reasons].map(
        ([reason, each]) => `${each.reduce((sum, [, count]) => sum + count, 0)} × ${reason}`,
      )
      return [
        what,
        all.length,
        all.reduce((sum, { lost }) => sum + lost, 0),
        `${Math.max(...pauses).toFixed(0)} ms`,
        `${median(pauses).toFixed(0)} ms`,
        failed.join(', ') || 'none',
      ]
    }),
  }
}

/** Starts HAProxy with the configuration for operators: one address for the current primary. */
async function startDatabaseBalancer(
  scope: Scope,
  parameters: { haproxy: string; folder: string; pair: PostgresPair; onLine(name: string, line: string): void },
): Promise<number> {
  const { haproxy: program, folder, pair, onLine } = parameters
  const [port = 0] = await findFreePorts(1)
  const [a, b] = pair.servers
  const text = await readFile(toPath('deploy/failover/haproxy.cfg'), 'utf8')
  const proxy = await startHaproxy({
    program,
    text: replaceAll(text, {
      'bind 127.0.0.1:5432': `bind 127.0.0.1:${port}`,
      'server a 10.0.0.1:5432 port 8008': `server a 127.0.0.1:${a?.port} port ${a?.rolePort}`,
      'server b 10.0.0.2:5432 port 8008': `server b 127.0.0.1:${b?.port} port ${b?.rolePort}`,
    }),
    file: join(folder, 'postgres.cfg'),
    port,
    onLine: (line) => onLine('PostgreSQL HAProxy', line),
  })
  scope.add(proxy, (each) => each.stop())
  return port
}

/** Runs an event and waits until signatures have been answered again for a while. Adds lost slugs to `lost`. */
async function observe(
  { load, pair, lost }: { load: Load; pair: PostgresPair; lost: Set<string> },
  what: Event['what'],
  act: () => Promise<void>,
): Promise<Event> {
  const start = performance.now()
  await act()
  const acted = performance.now()
  const isGood = ({ failure }: { failure: string | undefined }) => failure === undefined
  await until(() => load.since(acted + AFTER_MS).some(isGood), SETTLE_MS)
  const slugs = load.answered.filter(({ slug }) => !lost.has(slug)).map(({ slug }) => slug)
  const found = await pair.findSlugs(slugs)
  const missing = slugs.filter((slug) => !found.has(slug))
  for (const slug of missing) lost.add(slug)
  const failures = Map.groupBy(
    load.since(start).flatMap(({ failure }) => failure ?? []),
    (failure) => failure,
  )
  return {
    what,
    pauseMs: findLongestPause(load, start),
    failures: [...failures].map(([reason, { length }]) => [reason, length]),
    lost: missing.length,
  }
}

/** The longest time between two successful answers, of which the second came after `since`. */
function findLongestPause(load: Load, since: number): number {
  const good = load.since(0).filter(({ failure }) => failure === undefined)
  const sorted = good.map(({ endedAt }) => endedAt).toSorted((one, other) => one - other)
  return Math.max(0, ...sorted.map((at, index) => (index > 0 && at > since ? at - (sorted[index - 1] ?? at) : 0)))
}

function describe({ what, pauseMs, failures, lost }: Event): string {
  const failed = failures.map(([reason, count]) => `${count} × ${reason}`).join(', ')
  return `${what}: ${lost} answers lost, pause of ${Math.round(pauseMs)} ms, failed attempts: ${failed || 'none'}`
}
