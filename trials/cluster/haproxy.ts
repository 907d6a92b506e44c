import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { findChildren, isRunning, killIfThere } from '@countersign/testing'
import { until } from '../until.ts'

/** The real HAProxy in master mode in the foreground, as its image starts it. */
export type Haproxy = {
  /** Starts new workers, which take over the listeners while the old ones finish their requests. Resolves when the new ones serve. */
  reload(): Promise<void>
  /** Kills it with all connections and starts it again. */
  restart(): Promise<void>
  /**
   * Stops it like Compose does: it accepts no new connections and exits when the open ones have ended. Resolves when it no longer listens.
   */
  drain(): Promise<void>
  stop(): Promise<void>
}

const READY_MS = 60_000

/**
 * Replaces addresses in a configuration file. Throws if one is missing, because an address left in place could reach another program's port.
 */
export function replaceAll(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`${from} not found in the file`)
    return changed.replaceAll(from, () => to)
  }, text)
}

/** Ends HAProxy when this process dies for any reason: the shell in between notices that its pipe was closed. */
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
  /** Path to write the configuration to. */
  file: string
  /** Port that it listens on. */
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
    const output: string[] = []
    const found = Promise.withResolvers<number>()
    child.once('exit', () => found.reject(new Error(`HAProxy did not start: ${output.join('\n')}`)))
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', (line) => {
        const pid = /^pid (\d+)$/.exec(line)?.[1]
        if (pid !== undefined) found.resolve(Number(pid))
        else onLine(line)
        if (output.length < 20) output.push(line)
      })
    }
    const pid = await found.promise
    await until(async () => child.exitCode !== null || (await accepts(port)), READY_MS, 20)
    if (!(await accepts(port))) throw new Error(`HAProxy doesn't serve: ${output.join('\n')}`)
    return { child, pid }
  }

  /** Includes old workers that are still draining. */
  const listWorkers = () => findChildren(running.pid)

  return {
    async reload() {
      const before = new Set(await listWorkers())
      process.kill(running.pid, 'SIGUSR2')
      const isNew = async () => (await listWorkers()).some((pid) => !before.has(pid)) && (await accepts(port))
      if (!(await until(isNew, READY_MS, 20))) throw new Error('HAProxy did not reload in time')
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
