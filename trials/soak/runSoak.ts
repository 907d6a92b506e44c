import { createRandom } from '@countersign/testing'
import { type Audit, audit, createAccounts } from '@countersign/testing/stack'
import { startCluster } from '../cluster/startCluster.ts'
import { parseInspectorUrl } from '../openInspector.ts'
import { createVerifyTransaction } from '../verifyTransaction.ts'
import { type ChaosCounts, startChaos } from './chaos.ts'
import { type LoadReport, startLoad } from './load.ts'
import { type Growth, measureGrowth } from './memory.ts'

export type SoakParameters = {
  durationMs: number
  seed: number
  /** Without kills, cuts and failures it measures memory. */
  isCalm: boolean
  /** Enclaves have logs, and their witnesses are killed and frozen as the others are. */
  hasLog?: boolean
  users: number
  /** New signatures per second. */
  signRate: number
  killEveryMs: number
  disturbEveryMs: number
  say(line: string): void
  /** Each line that a process writes. */
  onLine?(name: string, line: string): void
}

export type SoakReport = Audit & {
  answered: number
  counts: LoadReport['counts']
  changed: string[]
  /** Processes that ended by themselves, or are not there at the end: a restart must need no hand, and none but ours. */
  deaths: string[]
  chaos: ChaosCounts
  /** Calls of satellite, IPFS and chain that were made to fail, of all. */
  outside: Record<string, { asked: number; failed: number }>
  /** From the end of the load to the last proof that became terminal. */
  settledMs: number
  /** Where it is calm. */
  memory: Growth[]
}

const FAILURE_RATE = 0.05
const SETTLE_MS = 120_000
const SAY_EVERY_MS = 15_000

/** Load and chaos on the whole topology, then an audit of all signatures that clients received. */
export async function runSoak(parameters: SoakParameters): Promise<SoakReport> {
  const { durationMs, isCalm, say, onLine = () => {} } = parameters
  const inspectorUrls = new Map<string, string>()
  // Each has its own, so that what one decides does not hang on how often another was asked.
  const random = (stream: number) => createRandom(parameters.seed * 16 + stream)
  const accounts = createAccounts(parameters.users)
  const cluster = await startCluster({
    accounts,
    quoteLatencyMs: 39,
    hasLog: parameters.hasLog ?? false,
    isInspected: isCalm,
    random: random(1),
    onLine(name, line) {
      const url = parseInspectorUrl(line)
      if (url !== undefined) inspectorUrls.set(name, url)
      onLine(name, line)
    },
  })
  try {
    say(`started ${cluster.members.map(({ name }) => name).join(', ')}`)
    const load = startLoad({
      url: cluster.url,
      subjects: accounts.map(({ sub }) => sub),
      signRate: parameters.signRate,
      pollRate: 3 * parameters.signRate,
      random: random(2),
    })
    const progress = setInterval(() => say(load.progress()), SAY_EVERY_MS)
    if (!isCalm) for (const proxy of Object.values(cluster.outside)) proxy.setRate(FAILURE_RATE)
    const chaos = isCalm ? undefined : startChaos({ ...parameters, cluster, random: random(3) })
    const watched = cluster.members.map((member) => ({ ...member, inspectorUrl: inspectorUrls.get(member.name) ?? '' }))
    const memory = isCalm ? await measureGrowth(watched, durationMs) : []
    if (!isCalm) await new Promise((resolve) => setTimeout(resolve, durationMs))
    await chaos?.stop()
    for (const proxy of Object.values(cluster.outside)) proxy.setRate(0)
    say(`the end of the load: ${load.progress()}`)
    const endedAt = performance.now()
    await load.finish(SETTLE_MS)
    const settledMs = performance.now() - endedAt
    clearInterval(progress)
    const { answered, proofs, counts, changed } = load.report()
    say(`all is settled after ${(settledMs / 1000).toFixed(1)} s: ${load.progress()}`)
    const died = cluster.members.flatMap(({ name, deaths }) => (deaths() > 0 ? [`${name} died ${deaths()} times`] : []))
    const down = cluster.members.flatMap(({ name, pid }) => (pid() === undefined ? [`${name} is down`] : []))
    const audited = await audit({
      ...cluster,
      received: answered,
      seen: proofs,
      verifyTransaction: createVerifyTransaction(cluster),
      say,
    })
    const unanswered = counts.asked - answered.length
    return {
      ...audited,
      lost: [...audited.lost, ...(unanswered > 0 ? [`${unanswered} signatures were never answered`] : [])],
      answered: answered.length,
      counts,
      changed,
      deaths: [...died, ...down],
      chaos: chaos?.counts ?? { kills: 0, freezes: 0, cuts: 0, databaseKills: 0 },
      outside: Object.fromEntries(Object.entries(cluster.outside).map(([name, { counts: each }]) => [name, each])),
      settledMs,
      memory,
    }
  } finally {
    await cluster.stop()
  }
}
