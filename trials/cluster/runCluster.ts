import { findProgram } from '@countersign/testing'
import { parseLogLine } from '@countersign/testing/launcher'
import { createAccounts, createUser, waitForProofs } from '@countersign/testing/stack'
import { signInAll } from '../bench/signer.ts'
import { compareThroughput, type Throughput } from './compareThroughput.ts'
import { type Failover, measureFailover } from './measureFailover.ts'
import { type Cluster, startCluster } from './startCluster.ts'

export type ClusterReport = {
  /** What each process did, by the lines it wrote. */
  work: { member: string; count: number; of: string }[]
  failovers: Failover[]
  throughputs: Throughput[]
  /** What is not as it should be. */
  faults: string[]
}

const USERS = 8
/** Signatures per second while processes are hit: half of what one quote each would allow. */
const RATE = 30

const PUBLISH_MS = 60_000

/** What a line of the log says that a process has done. */
function toWork(line: string): 'signatures' | 'receipts' | undefined {
  const { msg, route, status } = parseLogLine(line) ?? {}
  if (msg === 'Answered' && route === '/sign/digest' && status === 200) return 'signatures'
  return msg === 'Pinned receipt' ? 'receipts' : undefined
}

/** A process by its name, such as `enclave 1`. */
export type Hit = { name: string; fault: Failover['fault'] }

/** The whole topology: every process has work, processes fail one after the other under load, and three coordinators are compared with one. */
export async function runCluster(parameters: {
  /** Who is hit, and how, one after the other. */
  hits: readonly Hit[]
  /** Of the comparison; without any there is none. */
  rounds: number
  connections: readonly number[]
  /** Enclaves have logs, which witnesses cosign. */
  hasLog?: boolean
  say(line: string): void
}): Promise<ClusterReport> {
  const { say, hasLog = false } = parameters
  const lines = new Map<string, number>()
  const onLine = (name: string, line: string) => {
    if (toWork(line) !== undefined) lines.set(name, (lines.get(name) ?? 0) + 1)
  }
  const haproxy = findProgram('haproxy')
  say(haproxy === undefined ? 'HAProxy is not here: a balancer of ours stands in for it' : `the balancer is ${haproxy}`)
  const cluster = await startCluster({ accounts: createAccounts(USERS), quoteLatencyMs: 39, hasLog, haproxy, onLine })
  try {
    say(`started ${cluster.members.map(({ name }) => name).join(', ')}`)
    const user = createUser(cluster)
    await user.signIn('user-0')
    const failovers: Failover[] = []
    for (const { name, fault } of parameters.hits) {
      const member = cluster.members.find((each) => each.name === name)
      if (member === undefined) throw new Error(`there is no ${name}`)
      const failover = await measureFailover({ member, fault, user, rate: RATE })
      failovers.push(failover)
      say(describeFailover(failover))
    }
    const slugs = failovers.flatMap((failover) => failover.slugs)
    const unpublished = await findUnpublished(cluster, slugs)
    say(`${slugs.length} signatures, ${unpublished.length === 0 ? 'all published' : 'not all published'}`)
    const throughputs: Throughput[] = []
    if (parameters.rounds > 0) {
      // The same for both: one enclave, whose simulated quotes cost processor time that silicon does not, and no publishing.
      for (const idle of [...cluster.ofKind('worker'), ...cluster.ofKind('enclave').slice(1)])
        await idle.kill('SIGTERM')
      // What HAProxy and TLS cost is not compared.
      const places = [...cluster.ofKind('coordinator').keys()]
      const eachUrl: string[] = []
      for (const place of places) eachUrl.push(await cluster.startPlainBalancer([place]))
      const allUrl = await cluster.startPlainBalancer(places)
      const cookies = await signInAll(cluster, USERS)
      for (const connections of parameters.connections) {
        const { rounds } = parameters
        throughputs.push(await compareThroughput({ eachUrl, allUrl, cookies, connections, rounds }))
        say(`compared at ${connections} connections`)
      }
    }
    const work = cluster.members
      .filter(({ kind }) => kind === 'coordinator' || kind === 'worker')
      .map(({ name, kind }) => ({
        member: name,
        count: lines.get(name) ?? 0,
        of: kind === 'worker' ? 'receipts' : 'signatures',
      }))
    const idle = findIdle(parameters.hits, work)
    return { work, failovers, throughputs, faults: [...idle, ...findFaults(failovers, hasLog), ...unpublished] }
  } finally {
    await cluster.stop()
  }
}

function describeFailover({ member, fault, count, failures, longestMs }: Failover): string {
  return `${member} ${fault}: ${count} requests, ${failures.length} failed, the longest wait ${Math.round(longestMs)} ms`
}

/** Load comes with hits: without any, nothing is published. With some, a process that did nothing is a fault, even if all did nothing. */
export function findIdle(hits: readonly Hit[], work: ClusterReport['work']): string[] {
  if (hits.length === 0) return []
  return work.filter(({ count }) => count === 0).map(({ member }) => `${member} had no work`)
}

/**
 * Requests that a killed coordinator was serving get no answer; no other request may fail. With a log, what a killed enclave had signed and
 * not released is lost with it too: whoever asked is told so.
 */
function findFaults(failovers: readonly Failover[], hasLog: boolean): string[] {
  return failovers.flatMap((failover) => {
    const { member, fault, failures, lateFailures } = failover
    const mayCut = member.startsWith('coordinator') || (hasLog && member.startsWith('enclave'))
    const counted = mayCut && fault === 'killed' ? lateFailures : failures
    return counted.length === 0 ? [] : [describeFailover(failover), ...counted]
  })
}

/** Proofs that are not complete when time is over. */
async function findUnpublished({ url }: Cluster, slugs: readonly string[]): Promise<string[]> {
  const read = await waitForProofs({ url, slugs, timeoutMs: PUBLISH_MS })
  return read.flatMap(({ slug, httpStatus, proof }) =>
    proof?.status === 'complete' ? [] : [`${slug} is ${proof?.status ?? httpStatus} after ${PUBLISH_MS / 1000} s`],
  )
}
