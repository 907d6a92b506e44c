import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { findChildren, isRunning, killIfThere } from '@countersign/testing'
import { until } from '../until.ts'

/** The real one, in the foreground with a master, as its image starts it. */
export type Haproxy = {
  /** New processes take over the listeners; the old ones answer what they have. Resolves when the new ones serve. */
  reload(): Promise<void>
  /** Ends it with all that is under way, and starts it again. */
  restart(): Promise<void>
  /** As Compose stops it: no new connections are taken, and it ends when those that are open have ended. Resolves when it listens no more. */
  drain(): Promise<void>
  stop(): Promise<void>
}

const READY_MS = 60_000

/** A file of ours with other addresses. Each must be there: what is not replaced would reach somebody else's port. */
export function replaceAll(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`${from} is not in the file`)
    return changed.replaceAll(from, () => to)
  }, text)
}

/**
 * The shell between us and it ends it when our end of the pipe closes, so that it does not outlive this process, however that dies.
 */
const GUARD = `
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
echo "pid $program"
{ cat <&3 >/dev/null; kill -TERM $program 2>/dev/null; } &
guard=$!
wait $program
kill $guard 2>/dev/null`

export async function startHaproxy(parameters: {
  program: string
  text: string
  /** Where its configuration goes. */
  file: string
  /** That it listens on. */
  port: number
  env?: Readonly<Record<string, string>>
  onLine?(line: string): void
}): Promise<Haproxy> {
  const { program, text, file, port, env = {}, onLine = () => {} } = parameters
  await writeFile(file, text, { mode: 0o600 })
  let running = await start()

  async function start(): Promise<{ child: ChildProcess; pid: number }> {
    const child = spawn('/bin/sh', ['-c', GUARD, 'sh', program, '-W', '-db', '-f', file], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.on('error', () => {})
    const said: string[] = []
    const found = Promise.withResolvers<number>()
    child.once('exit', () => found.reject(new Error(`HAProxy did not start: ${said.join('\n')}`)))
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', (line) => {
        const pid = /^pid (\d+)$/.exec(line)?.[1]
        if (pid !== undefined) found.resolve(Number(pid))
        else onLine(line)
        if (said.length < 20) said.push(line)
      })
    }
    const pid = await found.promise
    await until(async () => child.exitCode !== null || (await accepts(port)), READY_MS, 20)
    if (!(await accepts(port))) throw new Error(`HAProxy does not serve: ${said.join('\n')}`)
    return { child, pid }
  }

  /** The workers of today, and of before. */
  const listWorkers = () => findChildren(running.pid)

  return {
    async reload() {
      const before = new Set(await listWorkers())
      process.kill(running.pid, 'SIGUSR2')
      const isNew = async () => (await listWorkers()).some((pid) => !before.has(pid)) && (await accepts(port))
      if (!(await until(isNew, READY_MS, 20))) throw new Error('HAProxy does not reload')
    },
    async restart() {
      const all = [running.pid, ...(await listWorkers())]
      for (const pid of all) killIfThere(pid)
      for (const pid of all) while (await isRunning(pid)) await setTimeout(1)
      running = await start()
    },
    async drain() {
      process.kill(running.pid, 'SIGUSR1')
      while (await accepts(port)) await setTimeout(20)
    },
    async stop() {
      const { child } = running
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.stdin?.end()
      await ended
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
