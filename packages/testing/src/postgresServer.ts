import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findChildren, isRunning, killIfThere } from './processes.ts'

/** Whom a server runs as. */
export type Account = { uid: number; gid: number }

export type StartServerParameters = {
  /** Its binaries are in `bin` there. */
  native: string
  /** Its files are in `data` there. */
  folder: string
  port: number
  /** From `findAccount`. */
  account: Account | undefined
  /** Command-line flags. */
  settings: readonly string[]
}

/** Nothing when we are not root; else an account that may run a server and can own nothing else of ours. */
export async function findAccount(): Promise<Account | undefined> {
  if (userInfo().uid !== 0) return undefined
  const run = promisify(execFile)
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // No such account: the next one.
    }
  }
  throw new Error('root needs an account named postgres or nobody to run PostgreSQL as')
}

/**
 * The shell between us and the server ends it when our end of the pipe closes, so that no server outlives a test process,
 * however that process dies. SIGINT is PostgreSQL's fast shutdown.
 */
const GUARD = `
exec 3<&0
"$@" 3<&- &
server=$!
{ cat <&3 >/dev/null; kill -INT $server 2>/dev/null; } &
guard=$!
wait $server
code=$?
kill $guard 2>/dev/null
exit $code`

export async function startServer({
  native,
  folder,
  port,
  account,
  settings,
}: StartServerParameters): Promise<ChildProcess> {
  const postgres = [join(native, 'bin', 'postgres'), '-D', join(folder, 'data'), '-p', String(port), ...settings]
  const server = spawn('/bin/sh', ['-c', GUARD, 'sh', ...postgres], {
    ...account,
    cwd: folder,
    // As a client of another server it looks for certificates there, and ours it may not read.
    env: { ...process.env, HOME: folder },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await new Promise<void>((resolve, reject) => {
    let output = ''
    server.stderr.on('data', (chunk: Buffer) => {
      // Read to the end of its life, or a full pipe would stop the server.
      if (output.length < 65_536) output += chunk.toString('utf8')
      // A standby's are read-only.
      if (/ready to accept (?:read-only )?connections/.test(output)) resolve()
    })
    server.on('error', reject)
    server.on('exit', (code) => reject(new Error(`PostgreSQL did not start (${code}): ${output}`)))
  })
  return server
}

/** Ends the server and its sessions as a crash would, and keeps its files. */
export async function killServer({ server, folder }: { server: ChildProcess; folder: string }): Promise<void> {
  const pid = await readPid(folder)
  // `close`, not `exit`: it comes when no process of the server holds its output any more.
  const closed = once(server, 'close')
  // Stopped, it starts no more sessions while they are counted. A session that is busy would outlive it, and answer.
  process.kill(pid, 'SIGSTOP')
  const children = await findChildren(pid)
  for (const each of [pid, ...children]) killIfThere(each)
  await closed
  // They close their output a moment before they end.
  for (const each of children) while (await isRunning(each)) await setTimeout(1)
}

export async function stopServer(server: ChildProcess) {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exit = once(server, 'exit')
  server.stdin?.end()
  await exit
}

export async function readPid(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8')).split('\n')[0])
}
