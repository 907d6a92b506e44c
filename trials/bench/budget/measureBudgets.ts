import { realpath } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import type { Backend, TestPostgres } from '@countersign/testing'
import { type Inspector, openInspector, parseInspectorUrl } from '../../openInspector.ts'
import { type Load, prepareLoad } from '../measureLoads.ts'
import type { Program } from '../startStack.ts'
import { profileThreads, type ThreadProfile } from './profileThreads.ts'
import { readThreads, type ThreadKind, type ThreadTime, toSpent } from './readThreads.ts'
import { type Stage, stages } from './stages.ts'
import { type Shares, toShares } from './toShares.ts'

/** A service under load, started with `INSPECTABLE`, and where its code lies. */
export type Subject = { load: Load; stack: Pick<Backend, 'pids' | 'logs'>; root: string }

/** Milliseconds of processor time for each signature. */
export type Budget = {
  threads: { name: string; ms: number; parts: { stage: Stage; ms: number }[] }[]
  /** What the stage `other` is made of, the largest first. */
  others: { name: string; ms: number }[]
}

/** The environment of processes that open their inspector on SIGUSR1. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' }

type Service = 'coordinator' | 'enclave'
type Thread = { name: string; process: Service | 'PostgreSQL' | 'satellite' | 'client' } & (
  | { kind: ThreadKind; stage?: never }
  /** Where no JavaScript can be sampled, all of it is for this. */
  | { kind?: ThreadKind; stage: Stage }
)

type Times = Readonly<Record<Thread['process'], readonly ThreadTime[]>>

const THREADS: readonly Thread[] = [
  ...toThreads('coordinator', 'signature worker'),
  ...toThreads('enclave', 'key worker'),
  { name: 'PostgreSQL', process: 'PostgreSQL', stage: 'database' },
  { name: 'satellite', process: 'satellite', stage: 'bench' },
  { name: 'client', process: 'client', stage: 'bench' },
]
const WAKE_MS = 10_000

function toThreads(service: Service, worker: string): Thread[] {
  return [
    { name: `${service}, main thread`, process: service, kind: 'main thread' },
    { name: `${service}, ${worker}`, process: service, kind: 'worker' },
    // They verify and sign for the other threads.
    { name: `${service}, libuv`, process: service, kind: 'libuv', stage: 'checks' },
    {
      name: `${service}, V8 (garbage collection, compiler)`,
      process: service,
      kind: 'V8',
      stage: 'garbage collection',
    },
  ]
}

/** For each of the services, in turns: first what each thread takes, then, with a profiler that costs something itself, for which stages. */
export async function measureBudgets(
  deps: { postgres: Pick<TestPostgres, 'findPids'>; satellite: Program },
  subjects: readonly Subject[],
  { connections, sliceMs, rounds }: { connections: number; sliceMs: number; rounds: number },
): Promise<Budget[]> {
  const lanes = subjects.map((subject) => ({ subject, signatures: 0, times: THREADS.map(() => 0) }))
  const read = async ({ coordinator, enclave }: ReturnType<Backend['pids']>): Promise<Times> => ({
    coordinator: await readThreads([toPid(coordinator)]),
    enclave: await readThreads([toPid(enclave)]),
    PostgreSQL: await readThreads(await deps.postgres.findPids()),
    satellite: await readThreads([toPid(deps.satellite.service.pid)]),
    client: await readThreads([process.pid]),
  })
  for (let round = 0; round < rounds; round++) {
    for (const lane of [...lanes, ...lanes.toReversed()]) {
      const { load, stack } = lane.subject
      const run = prepareLoad(load, connections, sliceMs)
      const before = await read(stack.pids())
      lane.signatures += (await run()).count
      const after = await read(stack.pids())
      for (const [index, { process, kind }] of THREADS.entries())
        lane.times[index] = (lane.times[index] ?? 0) + toSpent(before[process], after[process], kind)
    }
  }
  const budgets: Budget[] = []
  for (const { subject, signatures, times } of lanes) {
    const profiles = await takeProfiles(subject.stack, prepareLoad(subject.load, connections, 2 * sliceMs))
    const root = await realpath(subject.root)
    const shares = THREADS.map(({ process, kind, stage }): Shares => {
      if (stage !== undefined) return { stages: new Map([[stage, 1]]), others: new Map() }
      const like = profiles.filter((each) => each.service === process && each.isMain === (kind === 'main thread'))
      return toShares(
        like.map(({ profile }) => profile),
        root,
      )
    })
    budgets.push(
      toBudget(
        times.map((time) => time / signatures),
        shares,
      ),
    )
  }
  return budgets
}

async function takeProfiles(stack: Subject['stack'], run: () => Promise<unknown>) {
  const taken: (ThreadProfile & { service: Service })[] = []
  const inspectors: Inspector[] = []
  try {
    let runProfiled = run
    for (const service of ['coordinator', 'enclave'] as const) {
      const inspector = await openInspector(await wakeInspector(stack, toPid(stack.pids()[service])))
      inspectors.push(inspector)
      const inner = runProfiled
      runProfiled = async () => {
        for (const thread of await profileThreads(inspector, inner)) taken.push({ ...thread, service })
      }
    }
    await runProfiled()
    return taken
  } finally {
    for (const inspector of inspectors) inspector.close()
  }
}

/** Where the inspector listens: the process says it in a line. */
async function wakeInspector({ logs }: Subject['stack'], pid: number): Promise<string> {
  const read = () =>
    logs()
      .split('\n')
      .flatMap((line) => parseInspectorUrl(line) ?? [])
  const known = read().length
  const until = performance.now() + WAKE_MS
  process.kill(pid, 'SIGUSR1')
  while (performance.now() < until) {
    const url = read()[known]
    if (url !== undefined) return url
    await setTimeout(20)
  }
  throw new Error(`process ${pid} has no inspector`)
}

/** By the order of the threads. */
function toBudget(times: readonly number[], shares: readonly Shares[]): Budget {
  const threads = THREADS.map(({ name }, index) => {
    const ms = times[index] ?? 0
    const split = shares[index]?.stages
    const parts = stages.map((stage) => ({ stage, ms: ms * (split?.get(stage) ?? 0) }))
    return { name, ms, parts: parts.filter((part) => part.ms > 0) }
  })
  const others = shares.flatMap((share, index) =>
    [...share.others].map(([name, part]) => ({ name, ms: part * (times[index] ?? 0) })),
  )
  return { threads, others: others.toSorted((left, right) => right.ms - left.ms) }
}

function toPid(pid: number | undefined): number {
  if (pid === undefined) throw new Error('a process is not there')
  return pid
}
