import { readdir, readFile } from 'node:fs/promises'

/** Those that a process has started itself. */
export async function findChildren(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(pids.map(readProcess))
  return pids.filter((_, index) => processes[index]?.parent === parent)
}

/** A zombie has ended; who adopted it may never ask about it. */
export async function isRunning(pid: number): Promise<boolean> {
  const { state = 'Z' } = (await readProcess(pid)) ?? {}
  return state !== 'Z' && state !== 'X'
}

/** As Linux tells it. Undefined for a process that is not there any more. */
async function readProcess(pid: number): Promise<{ state: string; parent: number } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name before them may hold anything, brackets included.
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
