import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A service as a process of its own. */
export type Service = {
  name: string
  /** When it serves; rejects when it ends before that. */
  ready: Promise<void>
  /** How it ended, in words. Never rejects. */
  ended: Promise<{ isClean: boolean; how: string }>
  hasEnded(): boolean
  signal(signal: NodeJS.Signals): void
}

export type StartServiceParameters = {
  name: string
  /** Its main.ts. */
  main: string
  env: Record<string, string>
  /** Takes each line that it writes. */
  onLine(line: string): void
}

const END_WITH_PARENT = new URL('endWithParent.ts', import.meta.url).href

export function startService({ name, main, env, onLine }: StartServiceParameters): Service {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', '--import', END_WITH_PARENT, main], {
    // Nothing of the caller's environment: a stray DATABASE_URL is not meant for us.
    env: { PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // In a group of its own Ctrl-C does not reach it, so that the supervisor can stop one after the other.
    detached: true,
  })
  let resolve = () => {}
  let reject: (error: Error) => void = () => {}
  const ready = new Promise<void>((...settle) => {
    ;[resolve, reject] = settle
  })
  // Whoever waits is told; with nobody waiting it is no crash.
  ready.catch(() => {})
  child.stdin.on('error', () => {})
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      onLine(line)
      if (isStarted(line, name)) resolve()
    })
  }
  const ended = new Promise<{ isClean: boolean; how: string }>((settle) => {
    child.once('error', (error) => settle({ isClean: false, how: `could not be run: ${error.message}` }))
    // `close`, not `exit`: its last lines say why it ended.
    child.once('close', (code, signal) =>
      settle({
        // Told to stop in the moment before it listens for that.
        isClean: code === 0 || signal === 'SIGTERM',
        how: signal === null ? `ended with ${code}` : `was ended by ${signal}`,
      }),
    )
  })
  void ended.then(({ how }) => reject(new Error(`the ${name} ${how}`)))
  return {
    name,
    ready,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined,
    signal: (signal) => void child.kill(signal),
  }
}

function isStarted(line: string, name: string): boolean {
  try {
    return JSON.parse(line).msg === `Started the ${name}`
  } catch {
    return false
  }
}
