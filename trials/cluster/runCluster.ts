import { setTimeout as wait } from 'node:timers/promises'
import { parseLogLine } from '@countersign/testing/launcher'
import { createAccounts, waitForProofs } from '@countersign/testing/stack'
import { signInAll } from '../bench/load.ts'
import { type Lane, measureLanes, type Report, readConnections, toReportTable } from '../bench/report.ts'
import type { Member } from '../member.ts'
import { count, flag, type Outcome, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { startLoad } from './load.ts'
import { type Cluster, startCluster, startDatabase, toTopology } from './startCluster.ts'

/** Killing a worker affects no request, but its proofs must still complete. */
const FAULTS = {
  enclave: ['killed', 'frozen', 'stopped'],
  coordinator: ['killed', 'stopped'],
  worker: ['killed'],
  witness: ['killed', 'frozen'],
} as const

/** A process by its name, such as `enclave 1`, and its fault. */
export type Hit = { name: string; fault: 'killed' | 'frozen' | 'stopped' }

/** The effect of a fault on requests that were pending at that moment or sent after it. */
type Failover = Hit & {
  count: number
  failures: string[]
  /** Failures of requests sent after the fault. */
  lateFailures: string[]
  /** Longest wait of these requests, counted from the fault for pending ones. */
  longestMs: number
  /** Slugs of all signatures, before and after the fault. */
  slugs: string[]
}

const USERS = 8
/** Signatures per second during faults: half of what an enclave could sign with one quote each. */
const RATE = 30
const BEFORE_MS = 1_500
const AFTER_MS = 3_000
const PUBLISH_MS = 60_000
const SLICE_MS = 2_000
const WARM_SLICES = 5

function listHits({ failovers, witnesses }: Options): Hit[] {
  const counts = toTopology(witnesses)
  const once = (Object.keys(FAULTS) as Member['kind'][]).flatMap((kind) =>
    FAULTS[kind].flatMap((fault) =>
      Array.from({ length: counts[kind] }, (_, index) => ({ name: `${kind} ${index + 1}`, fault })),
    ),
  )
  return Array.from({ length: failovers }, () => once).flat()
}

const options = {
  rounds: count(3, 'rounds of the comparison, four turns each; 0 skips it', { least: 0 }),
  failovers: count(2, 'times that each process gets each fault', { least: 0 }),
  connections: { ...word('N,N', 'numbers of connections for the comparison (default 64,256)'), default: '64,256' },
  witnesses: flag('each enclave requires a log that 3 witnesses cosign; the witnesses are killed and frozen too'),
}
type Options = Values<typeof options>

export const cluster: Trial = {
  summary: `Starts the whole topology on loopback: PostgreSQL, 3 coordinators behind HAProxy with the deployed configuration,
2 workers, and 2 enclaves with one root secret and attested TLS. Kills, freezes and stops the processes one after
the other under load, and compares the throughput of three coordinators with one. Needs haproxy.`,
  options,
  example: '--rounds 0 --failovers 1',
  run: (deps, values: Options) => runCluster(deps, values),
}

/**
 * Starts the whole topology, checks that every process has work and that requests survive each fault, and compares the throughput of three
 * coordinators with one.
 */
export async function runCluster(
  { scope, say }: TrialDeps,
  options: Options,
  hits: readonly Hit[] = listHits(options),
): Promise<Outcome> {
  const { rounds, witnesses: hasLog } = options
  const connections = readConnections(options.connections)
  const done = new Map<string, number>()
  const onLine = (name: string, line: string) => {
    if (isWork(line)) done.set(name, (done.get(name) ?? 0) + 1)
  }
  const accounts = createAccounts(USERS)
  const { databaseUrl } = await startDatabase(scope)
  const cluster = await startCluster(scope, { accounts, databaseUrl, counts: toTopology(hasLog), onLine })
  say(`started ${cluster.members.map(({ name }) => name).join(', ')}`)
  const failovers: Failover[] = []
  for (const hit of hits) {
    const failover = await measureFailover(cluster, hit)
    failovers.push(failover)
    say(describe(failover))
  }
  const slugs = failovers.flatMap((failover) => failover.slugs)
  const read = await waitForProofs({ url: cluster.url, slugs, timeoutMs: PUBLISH_MS })
  const unpublished = read.filter(({ proof }) => proof?.status !== 'complete')
  const throughputs =
    rounds === 0 ? [] : [toReportTable(await compareThroughputs({ cluster, connections, rounds, say }))]
  const work = [...cluster.ofKind('coordinator'), ...cluster.ofKind('worker')].map(
    ({ name, kind }) => [name, done.get(name) ?? 0, kind === 'worker' ? 'receipts' : 'signatures'] as const,
  )
  const byFault = Map.groupBy(failovers, ({ name, fault }) => `${name.split(' ')[0]} ${fault}`)
  return {
    faults: [
      // Every process must have done work during the faults.
      ...(hits.length === 0 ? [] : work.filter(([, count]) => count === 0).map(([name]) => `${name} had no work`)),
      ...failovers.flatMap((failover) => findFaults(failover, hasLog)),
      ...unpublished.map(({ slug, proof, httpStatus }) => `${slug} not published: ${proof?.status ?? httpStatus}`),
    ],
    tables: [
      { head: ['Process', 'Did'], rows: work.map(([name, count, of]) => [name, `${count} ${of}`]) },
      {
        head: ['What', 'Times', 'Requests during or after', 'Failed', 'Longest wait'],
        rows: [...byFault].map(([name, all]) => {
          const count = all.reduce((sum, each) => sum + each.count, 0)
          const failed = all.reduce((sum, { failures }) => sum + failures.length, 0)
          return [
            name,
            all.length,
            count,
            failed,
            `${Math.max(...all.map(({ longestMs }) => longestMs)).toFixed(0)} ms`,
          ]
        }),
      },
      ...throughputs,
    ],
    figures: { signatures: slugs.length, failovers: failovers.length },
  }
}

/** Whether a log line reports work: a signature or a receipt. */
function isWork(line: string): boolean {
  const { msg, route, status } = parseLogLine(line) ?? {}
  return (msg === 'Answered' && route === '/sign/digest' && status === 200) || msg === 'Pinned receipt'
}

const describe = ({ name, fault, count, failures, longestMs }: Failover) =>
  `${name} ${fault}: ${count} requests, ${failures.length} failed, longest wait ${Math.round(longestMs)} ms`

/**
 * Only requests that a killed coordinator was serving may fail. With a log, the same holds for a killed enclave: it loses signatures that it
 * hasn't released yet, and their callers get an error.
 */
function findFaults(failover: Failover, hasLog: boolean): string[] {
  const { name, fault, failures, lateFailures } = failover
  const mayCut = name.startsWith('coordinator') || (hasLog && name.startsWith('enclave'))
  const counted = mayCut && fault === 'killed' ? lateFailures : failures
  return counted.length === 0 ? [] : [describe(failover), ...counted]
}

/** Applies a fault to one process under steady load, continues the load for a while, then restarts the process. */
async function measureFailover({ url, members }: Cluster, { name, fault }: Hit): Promise<Failover> {
  const member = members.find((each) => each.name === name)
  if (member === undefined) throw new Error(`no process named ${name}`)
  const load = await startLoad({ url, subjects: ['user-0'], rate: RATE, triesOnce: true })
  await wait(BEFORE_MS)
  const moment = performance.now()
  if (fault === 'frozen') member.freeze()
  else void member.kill(fault === 'killed' ? 'SIGKILL' : 'SIGTERM')
  await wait(AFTER_MS)
  await load.finish(PUBLISH_MS)
  const touched = load.since(moment)
  if (fault === 'frozen') member.wake()
  else {
    await member.kill('SIGKILL')
    await member.start()
  }
  return {
    name,
    fault,
    count: touched.length,
    failures: touched.flatMap(({ failure }) => failure ?? []),
    lateFailures: touched.flatMap(({ failure, sentAt }) => (sentAt > moment ? (failure ?? []) : [])),
    longestMs: Math.max(0, ...touched.map(({ sentAt, endedAt }) => endedAt - Math.max(sentAt, moment))),
    slugs: load.answered.map(({ slug }) => slug),
  }
}

/** Compares one coordinator with all of them, in turns, on one enclave and one database. */
async function compareThroughputs(parameters: {
  cluster: Cluster
  connections: readonly number[]
  rounds: number
  say(line: string): void
}): Promise<Report> {
  const { cluster, connections, rounds, say } = parameters
  // The other processes would take processor time: simulated quotes need more of it than hardware, and publishing isn't compared.
  for (const idle of [...cluster.ofKind('worker'), ...cluster.ofKind('enclave').slice(1)]) await idle.kill('SIGTERM')
  // Callers connect to the coordinators directly, without HAProxy and TLS.
  const { coordinatorUrls } = cluster
  const cookies = await signInAll(cluster, USERS)
  const run = { rounds, isQuick: false, say }
  const all = coordinatorUrls.map((url, index) => ({
    name: `coordinator ${index + 1}`,
    load: { urls: [url], cookies },
  }))
  const how = { sliceMs: SLICE_MS, warmSlices: WARM_SLICES }
  // Warms up each coordinator first, so that none is measured while its code is being compiled.
  for (const lane of all)
    await measureLanes({ ...run, rounds: 0 }, [lane], { ...how, connections: [Math.max(...connections)] })
  const lanes = [
    { ...all[0], name: 'one coordinator' },
    { name: 'three', load: { urls: coordinatorUrls, cookies } },
  ] as Lane[]
  return {
    suite: 'signatures per second',
    setting: '',
    columns: connections.flatMap((at) => [`@${at}`, `p50@${at}`]),
    rows: await measureLanes(run, lanes, { ...how, connections }),
    ratios: [['three', 'one coordinator']],
  }
}
