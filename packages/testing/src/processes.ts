import { readdir, readFile } from 'node:fs/promises'

/** PIDs of a process's direct children. */
export async function findChildren(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(pids.map(readProcess))
  return pids.filter((_, index) => processes[index]?.parent === parent)
}

/** A zombie counts as ended: its parent may never collect it. */
export async function isRunning(pid: number): Promise<boolean> {
  const { state = 'Z' } = (await readProcess(pid)) ?? {}
  return state !== 'Z' && state !== 'X'
}

/** Reads a process's state from /proc. Undefined if it has ended. */
async function readProcess(pid: number): Promise<{ state: string; parent: number } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The process name comes first and may contain parentheses.
  const [, state, parent] = /^.*\) (\S) (\d+) /s.exec(stat) ?? []
  return state === undefined ? undefined : { state, parent: Number(parent) }
}

export function killIfThere(pid: number) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
