import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findChildren, isRunning, killIfThere } from './processes.ts'

/** The account that a server runs as. */
export type Account = { uid: number; gid: number }

export type StartServerParameters = {
  /** Contains the binaries in `bin`. */
  native: string
  /** Contains the files in `data`. */
  folder: string
  port: number
  account: Account | undefined
  /** Command-line options. */
  settings: readonly string[]
}

/** Returns an unprivileged account that can run a server; undefined unless this process is root. */
export async function findAccount(): Promise<Account | undefined> {
  if (userInfo().uid !== 0) return undefined
  const run = promisify(execFile)
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // No such account: try the next one.
    }
  }
  throw new Error('running PostgreSQL as root requires an account named postgres or nobody')
}

/**
 * Ends the server when this process dies for any reason: the shell in between notices that its pipe was closed. SIGINT is PostgreSQL's fast
 * shutdown.
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
    // A server that connects to another one reads certificates from HOME. The caller's HOME may be unreadable.
    env: { ...process.env, HOME: folder },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await new Promise<void>((resolve, reject) => {
    let output = ''
    server.stderr.on('data', (chunk: Buffer) => {
      // Reads all output, because a full pipe would block the server.
      if (output.length < 65_536) output += chunk.toString('utf8')
      // A standby accepts read-only connections.
      if (/ready to accept (?:read-only )?connections/.test(output)) resolve()
    })
    server.on('error', reject)
    server.on('exit', (code) => reject(new Error(`PostgreSQL did not start (${code}): ${output}`)))
  })
  return server
}

/** Ends the server and its sessions like a crash. Keeps its files. */
export async function killServer({ server, folder }: { server: ChildProcess; folder: string }): Promise<void> {
  const pid = await readPid(folder)
  // `close` comes after `exit`, when no process of the server has its output open.
  const closed = once(server, 'close')
  // A stopped server can't start further sessions. A busy session would otherwise survive the server and answer.
  process.kill(pid, 'SIGSTOP')
  const children = await findChildren(pid)
  for (const each of [pid, ...children]) killIfThere(each)
  await closed
  // Processes close their output just before they end.
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
