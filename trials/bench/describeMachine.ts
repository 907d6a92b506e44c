import { execFile } from 'node:child_process'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { promisify } from 'node:util'

/** Describes the machine, its load and the commit in one line, to compare figures by. */
export async function describeMachine(now: Date): Promise<string> {
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const load = `load ${loadavg()[0]?.toFixed(1)} before`
  const commit = await readCommit('.')
  return `${now.toISOString().slice(0, 10)}, ${process.arch}, ${processor}, ${memory}, Node ${process.version}, ${load}, ${commit}`
}

/** The commit checked out in a folder: `commit 7840740d`, `commit 7840740d, changed`, or `no commit`. */
export async function readCommit(folder: string): Promise<string> {
  const git = async (...args: string[]) => (await promisify(execFile)('git', ['-C', folder, ...args])).stdout.trim()
  try {
    const commit = await git('rev-parse', '--short=8', 'HEAD')
    return `commit ${commit}${(await git('status', '--porcelain')) === '' ? '' : ', changed'}`
  } catch {
    return 'no commit'
  }
}
