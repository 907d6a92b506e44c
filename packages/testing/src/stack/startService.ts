import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { COMPILE_CACHE, toPath } from './paths.ts'

/** The fields of a JSON line. */
export type LogFields = Readonly<Record<string, unknown>>

export type ServiceEnd = {
  /** Null when a signal ended it. */
  code: number | null
  /** Ended with 0, or by SIGTERM before it could handle that. */
  isClean: boolean
  /** In words: `ended with 1`. */
  how: string
  lastLines: readonly string[]
}

/** A service as a process of its own. */
export type Service = ReturnType<typeof startService>

export type StartServiceParameters = {
  name: string
  /** Its main.ts. It writes JSON lines. */
  main: string
  /** All of its environment, besides PATH and the compile cache. */
  env: Readonly<Record<string, string>>
  /** The `msg` of the line that says that it serves; `Started the <name>` by default. */
  startedMessage?: string
  onLine?(line: string): void
  takesMessages?: boolean
  /** Off where start-up is measured, and in production, where an enclave refuses it. */
  hasCompileCache?: boolean
}

/** As a URL: `--import` would take `#`, `?` and `%` in the path of a checkout for parts of one. */
const END_WITH_PARENT = pathToFileURL(toPath('packages/testing/src/stack/endWithParent.ts')).href
/** Enough for a list of faults, or for the top of a stack trace. */
const LAST_LINES = 12
const STOP_TIMEOUT_MS = 30_000

export function startService(parameters: StartServiceParameters) {
  const { name, main, env, onLine, takesMessages = false } = parameters
  const { startedMessage = `Started the ${name}`, hasCompileCache = env.NODE_ENV !== 'production' } = parameters
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', '--import', END_WITH_PARENT, main], {
    // Nothing of the caller's environment: a stray DATABASE_URL is not meant for a test.
    env: { PATH, ...(hasCompileCache ? { NODE_COMPILE_CACHE: COMPILE_CACHE } : {}), ...env },
    stdio: ['pipe', 'pipe', 'pipe', takesMessages ? 'ipc' : 'ignore'],
    // In a group of its own, Ctrl-C does not reach it, and a supervisor can stop one service after the other.
    detached: true,
  })
  const { resolve, reject, promise: started } = Promise.withResolvers<LogFields>()
  // A start that fails while no caller awaits it is no crash of this process.
  started.catch(() => {})
  child.stdin?.on('error', () => {})
  const lastLines: string[] = []
  for (const input of [child.stdout, child.stderr]) {
    if (input === null) continue
    createInterface({ input }).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > LAST_LINES) lastLines.shift()
      onLine?.(line)
      const fields = parseLogLine(line)
      if (fields?.msg === startedMessage) resolve(fields)
    })
  }
  const ended = new Promise<ServiceEnd>((settle) => {
    child.once('error', (error) =>
      settle({ code: null, isClean: false, how: `could not be run: ${error.message}`, lastLines }),
    )
    // `close`, not `exit`: its last lines say why it ended.
    child.once('close', (code, signal) =>
      settle({
        code,
        isClean: code === 0 || signal === 'SIGTERM',
        how: signal === null ? `ended with ${code}` : `was ended by ${signal}`,
        lastLines,
      }),
    )
  })
  void ended.then((end) => reject(new Error(describeEnd(name, end))))

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined
  const signal = (sent: NodeJS.Signals) => void child.kill(sent)

  return {
    name,
    /** Undefined when the process could not be created. */
    pid: child.pid,
    child: child as ChildProcess,
    /** The fields of the line that says that it serves. Rejects when it ends before that. */
    started,
    /** Never rejects. */
    ended,
    hasEnded,
    signal,
    /** Sends the signal and gives the exit code when it has ended; null when a signal ended it. */
    async kill(sent: NodeJS.Signals): Promise<number | null> {
      if (!hasEnded()) signal(sent)
      return (await ended).code
    },
    /**
     * SIGTERM, once it serves: one that starts may be creating its database. Throws when it does not end cleanly, or not within the
     * time limit; then it is killed.
     */
    async stop(timeoutMs = STOP_TIMEOUT_MS): Promise<void> {
      if (hasEnded()) return
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        signal('SIGKILL')
      }, timeoutMs)
      await started.catch(() => {})
      signal('SIGTERM')
      const { isClean, how } = await ended
      clearTimeout(timer)
      if (isLate) throw new Error(`The ${name} did not stop in ${timeoutMs / 1000} s and was killed.`)
      if (!isClean) throw new Error(`The ${name} ${how} while stopping.`)
    },
    /** SIGSTOP: the process keeps its connections and does nothing until `wake`. */
    freeze: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    /** Sends a message to a service that takes messages. One that has just died takes none: `ended` reports that. */
    send: (message: object) => void (child.connected && child.send(message, () => {})),
  }
}

/** That a service ended, and its last lines, for a person. */
export function describeEnd(name: string, { how, lastLines }: Pick<ServiceEnd, 'how' | 'lastLines'>): string {
  if (lastLines.length === 0) return `The ${name} ${how}, and wrote nothing.`
  return [`The ${name} ${how}. Its last lines:`, ...lastLines.map((line) => `  ${line}`)].join('\n')
}

/** Undefined for a line that is no JSON object. */
export function parseLogLine(line: string): LogFields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as LogFields) : undefined
  } catch {
    return undefined
  }
}
