import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A service as a process of its own. */
export type Service = {
  name: string
  /** Of its process; undefined when it could not be run. */
  pid: number | undefined
  /** When it serves: what it says of itself. Rejects when it ends before that. */
  ready: Promise<Readonly<Record<string, unknown>>>
  /** How it ended, in words, and what it wrote last. Never rejects. */
  ended: Promise<{ isClean: boolean; how: string; lastLines: readonly string[] }>
  hasEnded(): boolean
  signal(signal: NodeJS.Signals): void
  /** Hands it a message, if it takes any. */
  send(message: object): void
}

export type StartServiceParameters = {
  name: string
  /** Its main.ts. It writes JSON lines, and `{ "msg": "Started the <name>" }` when it serves. */
  main: string
  env: Record<string, string>
  /** Takes each line that it writes. */
  onLine(line: string): void
  /** Whether it listens for messages; no unless told. */
  takesMessages?: boolean
}

const END_WITH_PARENT = new URL('endWithParent.ts', import.meta.url).href
/** Enough for a list of faults, or for the top of a stack trace. */
const LAST_LINES = 12

export function startService(parameters: StartServiceParameters): Service {
  const { name, main, env, onLine, takesMessages = false } = parameters
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', '--import', END_WITH_PARENT, main], {
    // Nothing of the caller's environment: a stray DATABASE_URL is not meant for us.
    env: { PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe', takesMessages ? 'ipc' : 'ignore'],
    // In a group of its own Ctrl-C does not reach it, so that the supervisor can stop one after the other.
    detached: true,
  })
  const { resolve, reject, promise: ready } = Promise.withResolvers<Readonly<Record<string, unknown>>>()
  // Whoever waits is told; with nobody waiting it is no crash.
  ready.catch(() => {})
  child.stdin?.on('error', () => {})
  const lastLines: string[] = []
  for (const input of [child.stdout, child.stderr]) {
    if (input === null) continue
    createInterface({ input }).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > LAST_LINES) lastLines.shift()
      onLine(line)
      const fields = parseFields(line)
      if (fields?.msg === `Started the ${name}`) resolve(fields)
    })
  }
  const ended = new Promise<Awaited<Service['ended']>>((settle) => {
    child.once('error', (error) => settle({ isClean: false, how: `could not be run: ${error.message}`, lastLines }))
    // `close`, not `exit`: its last lines say why it ended.
    child.once('close', (code, signal) =>
      settle({
        // Told to stop in the moment before it listens for that.
        isClean: code === 0 || signal === 'SIGTERM',
        how: signal === null ? `ended with ${code}` : `was ended by ${signal}`,
        lastLines,
      }),
    )
  })
  void ended.then(({ how }) => reject(new Error(`the ${name} ${how}`)))
  return {
    name,
    pid: child.pid,
    ready,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined,
    signal: (signal) => void child.kill(signal),
    // That it has just died is told by `ended`.
    send: (message) => void (child.connected && child.send(message, () => {})),
  }
}

function parseFields(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
