import { readdir, readFile } from 'node:fs/promises'
import { prepareLoad } from './load.ts'
import { type Row, toRow } from './report.ts'
import type { Bench, Measured } from './stack.ts'

/** Kinds of threads in a process of Node; other programs have main threads only. */
type ThreadKind = 'main thread' | 'worker' | 'libuv' | 'V8'
type Time = { id: string; kind: ThreadKind; ms: number }
type Process = 'coordinator' | 'enclave' | 'PostgreSQL' | 'satellite' | 'client'

/** Linux counts in hundredths of a second. */
const TICK_MS = 10
/** Smaller rows are left out. */
const SMALLEST_MS = 0.003

/** By the names that Node gives its threads; Linux keeps 15 characters of them. */
const KINDS: readonly (readonly [name: RegExp, kind: ThreadKind])[] = [
  [/WorkerThread/, 'worker'],
  [/libuv/, 'libuv'],
  [/V8Worker|DelayedTask/, 'V8'],
]

const THREADS: readonly (readonly [name: string, process: Process, kind?: ThreadKind])[] = [
  ...(['coordinator', 'enclave'] as const).flatMap((service) => [
    [`${service}, main thread`, service, 'main thread'] as const,
    [`${service}, ${service === 'enclave' ? 'key' : 'signature'} worker`, service, 'worker'] as const,
    [`${service}, libuv`, service, 'libuv'] as const,
    [`${service}, V8 (garbage collection, compiler)`, service, 'V8'] as const,
  ]),
  ['PostgreSQL', 'PostgreSQL'],
  ['satellite', 'satellite'],
  ['client', 'client'],
]

/** Processor time of each thread for a signature, of each subject in turns. Later subjects are what the first is compared with. */
export async function measureBudget(
  deps: Pick<Bench, 'postgres' | 'satellite'>,
  subjects: readonly Measured[],
  { connections, sliceMs, rounds }: { connections: number; sliceMs: number; rounds: number },
): Promise<Row[]> {
  const lanes = subjects.map((subject) => ({ subject, signatures: 0, times: THREADS.map(() => 0) }))
  const read = async ({
    coordinator,
    enclave,
  }: ReturnType<Measured['stack']['pids']>): Promise<Record<Process, Time[]>> => ({
    coordinator: await readThreads([coordinator]),
    enclave: await readThreads([enclave]),
    PostgreSQL: await readThreads(await deps.postgres.findPids()),
    satellite: await readThreads([deps.satellite.service.pid]),
    client: await readThreads([process.pid]),
  })
  for (let round = 0; round < rounds; round++) {
    for (const lane of [...lanes, ...lanes.toReversed()]) {
      const { stack } = lane.subject
      const run = prepareLoad(lane.subject, connections, sliceMs)
      const before = await read(stack.pids())
      lane.signatures += (await run()).count
      const after = await read(stack.pids())
      for (const [index, [, name, kind]] of THREADS.entries())
        lane.times[index] = (lane.times[index] ?? 0) + toSpent(before[name], after[name], kind)
    }
  }
  const budgets = lanes.map(({ signatures, times }) => times.map((time) => time / signatures))
  const toThread = (name: string, read: (times: readonly number[]) => number) => {
    const [own = 0, ...others] = budgets.map(read)
    return toRow(name, own, 'ms', Object.fromEntries(others.map((other) => ['the other checkout', own / other])))
  }
  return [
    toThread('all', (times) => times.reduce((left, right) => left + right, 0)),
    ...THREADS.map(([name], index) => toThread(name, (times) => times[index] ?? 0)),
  ].filter(({ value }) => value >= SMALLEST_MS)
}

/** The threads of these processes. Those that have ended are left out. */
async function readThreads(pids: readonly (number | undefined)[]): Promise<Time[]> {
  const threads: Time[] = []
  for (const pid of pids) {
    for (const task of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      const stat = await readFile(`/proc/${pid}/task/${task}/stat`, 'utf8').catch(() => undefined)
      if (stat === undefined) continue
      // A name may have spaces and parentheses of its own.
      const end = stat.lastIndexOf(')')
      const name = stat.slice(stat.indexOf('(') + 1, end)
      const fields = stat.slice(end + 2).split(' ')
      const ms = (Number(fields[11]) + Number(fields[12])) * TICK_MS
      threads.push({ id: `${pid} ${task}`, kind: KINDS.find(([known]) => known.test(name))?.[1] ?? 'main thread', ms })
    }
  }
  return threads
}

function toSpent(before: readonly Time[], after: readonly Time[], kind: ThreadKind | undefined): number {
  const known = new Map(before.map(({ id, ms }) => [id, ms]))
  const counted = after.filter((thread) => kind === undefined || thread.kind === kind)
  return counted.reduce((sum, { id, ms }) => sum + ms - (known.get(id) ?? 0), 0)
}
