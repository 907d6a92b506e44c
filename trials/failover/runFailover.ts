import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findFreePorts } from '@countersign/testing'
import { toPath } from '@countersign/testing/launcher'
import {
  type Audit,
  audit,
  createAccounts,
  readEvents,
  type Scope,
  type VerifyTransaction,
  waitForProofs,
  withScope,
} from '@countersign/testing/stack'
import { createAuthority, trust } from '../cluster/authority.ts'
import { replaceAll, startHaproxy } from '../cluster/haproxy.ts'
import { startClusterOn } from '../cluster/startCluster.ts'
import { createVerifyTransaction } from '../verifyTransaction.ts'
import { countReasons, findLongestPause, type Load, startLoad } from './load.ts'
import type { Part } from './parts.ts'
import { type Mode, type PostgresPair, startPostgresPair } from './postgresPair.ts'
import { type RestoredBackups, restoreBackups } from './restoreBackups.ts'

export type FailoverParameters = {
  parts: readonly Part[]
  /** Of each kind of event. */
  rounds: number
  /** Signatures a second. */
  rate: number
  mode: Mode
  /** For so long before its primary dies, the standby gets nothing. */
  lagMs: number
  /** From the death of the primary until the standby is promoted: what it takes to notice. */
  outageMs: number
  /** Programs. */
  haproxy: string
  native: string
  say(line: string): void
  onLine?(name: string, line: string): void
}

type Event = {
  what: 'failover of PostgreSQL' | 'reload of HAProxy' | 'restart of HAProxy'
  /** From the last good answer before to the first good one after. */
  pauseMs: number
  /** Tries that failed, by reason. */
  failures: { reason: string; count: number }[]
  /** Answered before, and not in the database after it. */
  lost: number
}

export type FailoverReport = {
  events: Event[]
  asked: number
  answered: number
  /** Answered otherwise when they were asked for again. */
  changed: string[]
  audit: Audit
  backups: RestoredBackups | undefined
  deaths: string[]
  faults: string[]
}

const USERS = 8
const BEFORE_MS = 3_000
const AFTER_MS = 3_000
const SETTLE_MS = 120_000
const VERIFIED_OF = 8
const counts = { coordinator: 2, worker: 1, enclave: 1, witness: 0 }

/** PostgreSQL fails over, and the balancer is reloaded and restarted, under load; then everything that was answered is looked for. */
export async function runFailover(parameters: FailoverParameters): Promise<FailoverReport> {
  return withScope((scope) => run(parameters, scope))
}

async function run(parameters: FailoverParameters, scope: Scope): Promise<FailoverReport> {
  const { parts, rounds, rate, mode, lagMs, outageMs, haproxy, native, say, onLine = () => {} } = parameters
  const folder = await scope.createFolder()
  const authority = await createAuthority(folder)
  trust(authority)
  const pair = await startPostgresPair(scope, { native, authority, mode })
  const databasePort = await startDatabaseBalancer(scope, { haproxy, folder, pair, onLine })
  const accounts = createAccounts(USERS)
  const databaseUrl = pair.toUrl(databasePort)
  const cluster = await startClusterOn({ accounts, quoteLatencyMs: 39, databaseUrl, haproxy, counts, onLine })
  scope.add(cluster, (each) => each.stop())
  const { proxy } = cluster
  if (proxy === undefined) throw new Error('no HAProxy')
  const isTlsRequired = await pair.refusesPlain()
  const load = await startLoad({ url: cluster.url, subjects: accounts.map(({ sub }) => sub), rate })
  const observed = { load, pair, lost: new Set<string>() }
  const events: Event[] = []
  const note = (event: Event) => {
    events.push(event)
    say(describe(event))
  }

  for (let round = 1; parts.includes('database') && round <= rounds; round++) {
    await wait(BEFORE_MS)
    const event = await observe(observed, 'failover of PostgreSQL', async () => {
      if (lagMs > 0) {
        pair.cut()
        await wait(lagMs)
      }
      await pair.kill()
      await wait(outageMs)
      await pair.promote()
    })
    note(event)
    await pair.rejoin()
  }
  for (const [what, act] of [
    ['reload of HAProxy', () => proxy.reload()],
    ['restart of HAProxy', () => proxy.restart()],
  ] as const) {
    for (let round = 1; parts.includes('balancer') && round <= rounds; round++) {
      await wait(BEFORE_MS)
      note(await observe(observed, what, act))
    }
  }
  let backups: RestoredBackups | undefined
  if (parts.includes('backups')) {
    await wait(BEFORE_MS)
    backups = await restoreBackups(pair, { folder, say }).catch(toFailed)
    say(`a dump of ${backups.dumpBytes} bytes, restored into an empty database: ${backups.dump}`)
    say(`a copy and the archive, restored into an empty server: ${backups.archive}`)
  }
  await load.finish(SETTLE_MS)
  const { answered } = load
  say(`${answered.length} of ${load.asked()} signatures were answered; waiting for their proofs`)
  const changed = await load.askAgain()
  const read = await waitForProofs({ url: cluster.url, slugs: answered.map(({ slug }) => slug), timeoutMs: SETTLE_MS })
  const seen = new Map(read.flatMap(({ slug, proof }) => (proof === undefined ? [] : [[slug, proof] as const])))
  const audited = await audit({
    ...cluster,
    received: answered,
    seen,
    verifyTransaction: await createVerifySome(cluster),
    say,
  })
  const deaths = cluster.members.flatMap(({ name, deaths: died }) =>
    died() > 0 ? [`${name} died ${died()} times`] : [],
  )
  const report = { events, backups, asked: load.asked(), answered: answered.length, changed, audit: audited, deaths }
  return {
    ...report,
    faults: [...(isTlsRequired ? [] : ['a plain connection was let in']), ...findFaults(report, mode)],
  }
}

/** The rest of the run is worth its report all the same. */
function toFailed(error: Error): RestoredBackups {
  return { dump: '', archive: '', dumpBytes: 0, faults: [`backups: ${error.message}`] }
}

/** The whole verifier for one in eight, which takes most of the time; for the others, what the event names. */
async function createVerifySome(cluster: Parameters<typeof createVerifyTransaction>[0]): Promise<VerifyTransaction> {
  const verify = createVerifyTransaction(cluster)
  const events = await readEvents({ url: cluster.chainUrl, contract: cluster.contract })
  const cids = new Map<string, string>(events.map(({ txHash, ipfsCid }) => [txHash, ipfsCid]))
  let turn = 0
  return async (txHash) => {
    const cid = cids.get(txHash)
    return turn++ % VERIFIED_OF === 0 || cid === undefined ? verify(txHash) : { cid }
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
  const until = acted + SETTLE_MS
  while ((load.goodAt.at(-1) ?? 0) < acted + AFTER_MS && performance.now() < until) await wait(50)
  const slugs = load.answered.filter(({ slug }) => !lost.has(slug)).map(({ slug }) => slug)
  const found = await pair.findSlugs(slugs)
  const missing = slugs.filter((slug) => !found.has(slug))
  for (const slug of missing) lost.add(slug)
  return {
    what,
    pauseMs: findLongestPause(load.goodAt, start),
    failures: countReasons(load.failures, start),
    lost: missing.length,
  }
}

function describe({ what, pauseMs, failures, lost }: Event): string {
  const failed = failures.map(({ reason, count }) => `${count} × ${reason}`).join(', ')
  return `${what}: ${lost} answered lost, a pause of ${Math.round(pauseMs)} ms, failed tries: ${failed || 'none'}`
}

/** What must not be, whichever way PostgreSQL replicates. Without waiting for the standby, what was answered may be lost: that is told. */
function findFaults(report: Omit<FailoverReport, 'faults'>, mode: Mode): string[] {
  const { events, asked, answered, changed, audit: audited, deaths } = report
  const lost = events.reduce((sum, event) => sum + event.lost, 0)
  const common = [
    ...(answered < asked ? [`${asked - answered} signatures were never answered`] : []),
    ...deaths,
    ...(report.backups?.faults ?? []),
    ...audited.invalid,
  ]
  if (mode === 'async') return common
  return [
    ...common,
    ...(lost > 0 ? [`${lost} answered signatures were lost`] : []),
    ...changed.map((each) => `answered otherwise: ${each}`),
    ...audited.lost,
    ...audited.duplicated,
    ...audited.unknown.map((each) => `an event of a signature that nobody has: ${each}`),
  ]
}
