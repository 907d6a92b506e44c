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
  what: 'failover of PostgreSQL' | 'reload of HAProxy' | 'restart of HAProxy'
  /** From the last good answer before to the first good one after. */
  pauseMs: number
  /** Tries that failed, by reason. */
  failures: [reason: string, count: number][]
  /** Answered before, and not in the database after it. */
  lost: number
}

const USERS = 8
const BEFORE_MS = 3_000
const AFTER_MS = 3_000
const SETTLE_MS = 120_000
const VERIFIED_OF = 8
const counts = { coordinator: 2, worker: 1, enclave: 1, witness: 0 }

const options = {
  parts: choices('NAME,NAME', ['database', 'balancer', 'backups'], 'what happens'),
  rounds: count(5, 'times that each of these happens', { most: 100 }),
  rate: count(30, 'signatures a second', { most: 500 }),
  mode: {
    ...word('MODE', 'sync: a commit waits for the standby; async: it does not (default sync)'),
    default: 'sync',
  },
  lag: count(0, 'milliseconds for which the standby gets nothing before its primary dies', {
    least: 0,
    most: 60_000,
  }),
  outage: count(0, 'milliseconds from the death of the primary to the promotion', { least: 0, most: 60_000 }),
  log: flag('prints the lines of all processes too'),
}
type Options = Values<typeof options>

export const failover: Trial = {
  summary: `Starts PostgreSQL with a standby and TLS required, two coordinators behind HAProxy with the file that is deployed, a worker and an enclave.
Under load it kills the primary and promotes the standby, reloads HAProxy, and restarts it; it takes backups and restores them into an
empty database and an empty server; then it looks for everything that was answered. Needs haproxy, and PostgreSQL with its tools in
/usr/lib/postgresql.`,
  options,
  example: '--rounds 1 --mode async --lag 500',
  run: runFailover,
}

/** PostgreSQL fails over, and the balancer is reloaded and restarted, under load; then everything that was answered is looked for. */
export async function runFailover({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { parts, rounds, rate, mode, lag, outage } = options
  const [haproxy, native] = [findHaproxy(), await findPostgres()]
  if (mode !== 'sync' && mode !== 'async') throw new WrongArgumentError(`--mode is ${mode}: expected sync or async`)
  if (native === undefined) {
    throw new WrongArgumentError('PostgreSQL with its tools in /usr/lib/postgresql is not installed')
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
  const isTlsRequired = await pair.refusesPlain()
  const load = await startLoad({ url: cluster.url, subjects: accounts.map(({ sub }) => sub), rate })
  const observed = { load, pair, lost: new Set<string>() }
  const events: Event[] = []
  const happen = async (what: Event['what'], act: () => Promise<void>) => {
    await wait(BEFORE_MS)
    const event = await observe(observed, what, act)
    events.push(event)
    say(describe(event))
  }

  for (let round = 1; parts.includes('database') && round <= rounds; round++) {
    await happen('failover of PostgreSQL', async () => {
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
    await happen('reload of HAProxy', () => proxy.reload())
    await happen('restart of HAProxy', () => proxy.restart())
  }
  const backups: string[] = []
  if (parts.includes('backups')) {
    await wait(BEFORE_MS)
    // The rest of the run is worth its report all the same.
    const found = await restoreBackups(pair, { folder, say }).catch((error: Error) => [error.message])
    backups.push(...found.map((fault) => `backups: ${fault}`))
  }
  await load.finish(SETTLE_MS)
  const { answered } = load
  say(`${answered.length} of ${load.counts.asked} signatures were answered`)
  const changed = await load.askAgain()
  const audited = await audit(cluster, answered, { say, verifyOneIn: VERIFIED_OF })
  const lost = events.reduce((sum, event) => sum + event.lost, 0)
  // Without waiting for the standby, what was answered may be lost: those figures are reported, and are no faults.
  const ofSync = [
    ...(lost > 0 ? [`${lost} answered signatures were lost`] : []),
    ...changed.map((each) => `answered otherwise: ${each}`),
    ...listFaults({ ...audited, invalid: [] }),
  ]
  return {
    faults: [
      ...(isTlsRequired ? [] : ['a plain connection was let in']),
      ...(answered.length < load.counts.asked
        ? [`${load.counts.asked - answered.length} signatures were never answered`]
        : []),
      ...listDeaths(cluster.members),
      ...backups,
      ...audited.invalid,
      ...(mode === 'sync' ? ofSync : []),
    ],
    tables: [toTable(events)],
    figures: {
      asked: load.counts.asked,
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
    head: ['What', 'Times', 'Answered and lost', 'Longest pause', 'Median pause', 'Failed tries'],
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

/** HAProxy with the file that we give operators: one address for whichever server is primary. */
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
    onLine: (line) => onLine('HAProxy of PostgreSQL', line),
  })
  scope.add(proxy, (each) => each.stop())
  return port
}

/** Lets something happen, and waits until signatures are answered again for a while. What is found to be lost is added to `lost`. */
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

/** The longest time between two good answers, of which the second is after a moment. */
function findLongestPause(load: Load, since: number): number {
  const good = load.since(0).filter(({ failure }) => failure === undefined)
  const sorted = good.map(({ endedAt }) => endedAt).toSorted((one, other) => one - other)
  return Math.max(0, ...sorted.map((at, index) => (index > 0 && at > since ? at - (sorted[index - 1] ?? at) : 0)))
}

function describe({ what, pauseMs, failures, lost }: Event): string {
  const failed = failures.map(([reason, count]) => `${count} × ${reason}`).join(', ')
  return `${what}: ${lost} answered lost, a pause of ${Math.round(pauseMs)} ms, failed tries: ${failed || 'none'}`
}
