import { readdir, readFile } from 'node:fs/promises'
import type { PostgresClient } from '@countersign/testing'
import type { Bench, Measured } from './stack.ts'

/** Linux counts processor time in hundredths of a second. */
const TICK_US = 10_000

export const BUDGET = [
  'CPU µs',
  'coordinator',
  'its worker',
  'other',
  'enclave',
  'its key worker',
  'other ',
  'PostgreSQL',
]

/**
 * Reads what a service has used so far: bytes of PostgreSQL's write-ahead log, and processor time of its processes by thread name. Clients,
 * satellite and witnesses don't count.
 */
export async function readBudget(deps: Pick<Bench, 'postgres'> & Pick<PostgresClient, 'query'>, { stack }: Measured) {
  const pids = stack.pids()
  const coordinator = await readNode(pids.coordinator)
  const enclave = await readNode(pids.enclave)
  const sessions = await Promise.all((await deps.postgres.findPids()).map((pid) => readTime(`${pid}`)))
  // PostgreSQL's main process accumulates the time of sessions that have ended.
  const database = sessions.reduce((sum, { own, ended }) => sum + own + ended, 0)
  const [wal] = await deps.query<{ bytes: string }>(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as bytes`)
  const times = [...coordinator, ...enclave, database]
  const values = [times.reduce((left, right) => left + right, 0), ...times]
  return { ...Object.fromEntries(BUDGET.map((name, index) => [name, values[index] ?? 0])), 'WAL B': Number(wal?.bytes) }
}

/** Processor time of a process by thread: main, workers and all others. Zero if the process has ended. */
async function readNode(pid: number | undefined): Promise<[number, number, number]> {
  const all = await readTime(`${pid}`)
  const main = await readTime(`${pid}/task/${pid}`)
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => [])
  const threads = await Promise.all(tasks.map((task) => readTime(`${pid}/task/${task}`)))
  const workers = threads.reduce((sum, { name, own }) => sum + (name.includes('WorkerThread') ? own : 0), 0)
  return [main.own, workers, all.own - main.own - workers]
}

/** In microseconds. `ended` is the time of exited child processes. */
export async function readTime(process: string) {
  const stat = await readFile(`/proc/${process}/stat`, 'utf8').catch(() => '')
  // A process name may contain spaces and parentheses.
  const end = stat.lastIndexOf(')')
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = stat
    .slice(end + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number)
  const name = stat.slice(stat.indexOf('(') + 1, end)
  return { name, own: (user + system) * TICK_US, ended: (endedUser + endedSystem) * TICK_US }
}
