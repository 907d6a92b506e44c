import { randomUUID } from 'node:crypto'
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readCode } from '@countersign/service'

/** Identifies a process uniquely. Process ids repeat, in a container after every restart. */
type Holder = { pid: number; birth: string }

/**
 * Takes a state folder for this process, and returns a function that releases it. Two stacks would corrupt it. The lock of a dead process is
 * ignored.
 *
 * Locks are numbered, and the highest counts. A file is never replaced, so no process can drop a lock that another has just written: a
 * process that finds a dead one creates the next, and only one can get its name.
 */
export async function lockState(stateDir: string): Promise<() => Promise<void>> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  const toPath = (number: number) => join(stateDir, `dev-${number}.lock`)
  // Written under another name, then linked, so that no process reads half a lock.
  const draft = join(stateDir, `dev-${randomUUID()}.draft`)
  await writeFile(draft, JSON.stringify({ pid: process.pid, birth: await readBirth(process.pid) }), { mode: 0o600 })
  try {
    for (;;) {
      const last = Math.max(0, ...(await listLocks(stateDir)))
      if (last > 0) await assertDead(toPath(last))
      const own = last + 1
      if (!(await isLinked(draft, toPath(own)))) continue
      const locks = await listLocks(stateDir)
      // Only after a very long pause between the two listings.
      if (Math.max(...locks) !== own) {
        await rm(toPath(own), { force: true })
        continue
      }
      for (const number of locks) if (number < own) await rm(toPath(number), { force: true })
      return () => rm(toPath(own), { force: true })
    }
  } finally {
    await rm(draft, { force: true })
  }
}

async function listLocks(stateDir: string): Promise<number[]> {
  const files = await readdir(stateDir)
  return files.flatMap((file) => /^dev-([1-9][0-9]{0,14})\.lock$/.exec(file)?.[1] ?? []).map(Number)
}

async function assertDead(path: string): Promise<void> {
  const holder = await readHolder(path)
  if (holder === undefined) return
  throw new Error(`the state folder is in use by process ${holder.pid}`)
}

/** The process that holds a lock, if it still runs. */
async function readHolder(path: string): Promise<Holder | undefined> {
  const text = await readFile(path, 'utf8').catch(orUndefined)
  const holder = text === undefined ? undefined : parseHolder(text)
  return holder && (await readBirth(holder.pid)) === holder.birth ? holder : undefined
}

function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, birth } = JSON.parse(text)
    return Number.isSafeInteger(pid) && pid > 0 && typeof birth === 'string' ? { pid, birth } : undefined
  } catch {
    return undefined
  }
}

/** When the process began, if the system reports it. Undefined if it doesn't run. */
async function readBirth(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(orUndefined)
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(orUndefined)
    // proc(5): the name, in parentheses, may contain anything. The state follows it, and the start time is field 22, the twentieth after it.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A dead process that its parent has not reaped holds nothing.
    const isZombie = fields?.[0] === 'Z' || fields?.[0] === 'X'
    return fields && !isZombie ? `${boot?.trim()}/${fields[19]}` : undefined
  }
  try {
    process.kill(pid, 0)
    return 'alive'
  } catch (error) {
    return readCode(error) === 'EPERM' ? 'alive' : undefined
  }
}

async function isLinked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (readCode(error) === 'EEXIST') return false
    throw error
  }
}

/** The file is missing, or the process ended while its file was read. */
function orUndefined(error: unknown): undefined {
  const code = readCode(error)
  if (code !== 'ENOENT' && code !== 'ESRCH') throw error
}
