import { readdir, readFile } from 'node:fs/promises'

/** Kinds of threads in a process of Node; other programs have main threads only. */
export type ThreadKind = 'main thread' | 'worker' | 'libuv' | 'V8'

/** Processor time that a thread has had so far. */
export type ThreadTime = { id: string; kind: ThreadKind; ms: number }

/** Linux counts in hundredths of a second, whatever the machine. */
const TICK_MS = 10

/** By the names that Node gives its threads; Linux keeps 15 characters of them. */
const KINDS: readonly (readonly [name: RegExp, kind: ThreadKind])[] = [
  [/WorkerThread/, 'worker'],
  [/libuv/, 'libuv'],
  [/V8Worker|DelayedTask/, 'V8'],
]

/** The threads of these processes; those that have ended meanwhile are left out. */
export async function readThreads(pids: readonly number[]): Promise<ThreadTime[]> {
  const threads: ThreadTime[] = []
  for (const pid of pids) {
    for (const task of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      const stat = await readFile(`/proc/${pid}/task/${task}/stat`, 'utf8').catch(() => undefined)
      if (stat === undefined) continue
      // A name may have spaces and parentheses of its own.
      const end = stat.lastIndexOf(')')
      const name = stat.slice(stat.indexOf('(') + 1, end)
      const fields = stat.slice(end + 2).split(' ')
      const ms = (Number(fields[11]) + Number(fields[12])) * TICK_MS
      const kind = KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? 'main thread'
      threads.push({ id: `${pid} ${task}`, kind, ms })
    }
  }
  return threads
}

/** What those of one kind, or all, have had in between. One that is new had nothing before, and what one had that has ended is not known. */
export function toSpent(before: readonly ThreadTime[], after: readonly ThreadTime[], kind?: ThreadKind): number {
  const known = new Map(before.map(({ id, ms }) => [id, ms]))
  const counted = after.filter((thread) => kind === undefined || thread.kind === kind)
  return counted.reduce((sum, { id, ms }) => sum + ms - (known.get(id) ?? 0), 0)
}
