import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { COMPILE_CACHE, toPath } from './paths.ts'

/** The fields of a JSON line. */
export type LogFields = Readonly<Record<string, unknown>>

export type ServiceEnd = {
  /** Null if a signal ended it. */
  code: number | null
  /** Whether it exited with 0, or by SIGTERM before it could handle the signal. */
  isClean: boolean
  /** The reason in words, such as `exited with code 1`. */
  how: string
  lastLines: readonly string[]
}

/** A service in a separate process. */
export type Service = ReturnType<typeof startService>

export type StartServiceParameters = {
  name: string
  /** Path of its main file, which logs JSON lines. */
  main: string
  /** Its environment, except for PATH and the compile cache. */
  env: Readonly<Record<string, string>>
  /** The `msg` of its "started" log line. Default: `Started the <name>`. */
  startedMessage?: string
  onLine?(line: string): void
  takesMessages?: boolean
  /** Turned off where startup is measured, and in production, where an enclave rejects it. */
  hasCompileCache?: boolean
}

/** A URL, because `--import` would parse `#`, `?` and `%` in the path of a checkout. */
const END_WITH_PARENT = pathToFileURL(toPath('packages/testing/src/stack/endWithParent.ts')).href
/** Enough for a list of faults or the top of a stack trace. */
const LAST_LINES = 12
const STOP_TIMEOUT_MS = 30_000

export function startService(parameters: StartServiceParameters) {
  const { name, main, env, onLine, takesMessages = false } = parameters
  const { startedMessage = `Started the ${name}`, hasCompileCache = env.NODE_ENV !== 'production' } = parameters
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', '--import', END_WITH_PARENT, main], {
    // Excludes the caller's environment, so that a stray DATABASE_URL doesn't affect a test.
    env: { PATH, ...(hasCompileCache ? { NODE_COMPILE_CACHE: COMPILE_CACHE } : {}), ...env },
    stdio: ['pipe', 'pipe', 'pipe', takesMessages ? 'ipc' : 'ignore'],
    // A separate process group isn't reached by Ctrl-C, so a supervisor can stop services in order.
    detached: true,
  })
  const { resolve, reject, promise: started } = Promise.withResolvers<LogFields>()
  // A failed start that isn't awaited must not end this process.
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
  const ended = new Promise<ServiceEnd>((finish) => {
    child.once('error', (error) =>
      finish({ code: null, isClean: false, how: `could not be started: ${error.message}`, lastLines }),
    )
    // `close` comes after `exit`, once all output is read.
    child.once('close', (code, signal) =>
      finish({
        code,
        isClean: code === 0 || signal === 'SIGTERM',
        how: signal === null ? `exited with code ${code}` : `was killed by ${signal}`,
        lastLines,
      }),
    )
  })
  void ended.then((end) => reject(new Error(describeEnd(name, end))))

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined
  const signal = (sent: NodeJS.Signals) => void child.kill(sent)

  return {
    name,
    /** Undefined if the process could not be created. */
    pid: child.pid,
    child: child as ChildProcess,
    /** Fields of the "started" log line. Rejects if the process ends before it. */
    started,
    /** Never rejects. */
    ended,
    hasEnded,
    signal,
    /** Sends a signal. Returns the exit code once the process has ended; null if a signal ended it. */
    async kill(sent: NodeJS.Signals): Promise<number | null> {
      if (!hasEnded()) signal(sent)
      return (await ended).code
    },
    /**
     * Sends SIGTERM once the service serves, since it may be creating its database before that. Throws if it exits with an error or exceeds
     * the time limit, after which it is killed.
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
    /** SIGSTOP: the process keeps its connections but doesn't run until `wake`. */
    freeze: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    /** Sends a message to a service that takes messages. Does nothing if the service has just died; `ended` reports that. */
    send: (message: object) => void (child.connected && child.send(message, () => {})),
  }
}

/** Describes the end of a service with its last lines. */
export function describeEnd(name: string, { how, lastLines }: Pick<ServiceEnd, 'how' | 'lastLines'>): string {
  if (lastLines.length === 0) return `The ${name} ${how} without output.`
  return [`The ${name} ${how}. Its last lines:`, ...lastLines.map((line) => `  ${line}`)].join('\n')
}

/** Undefined for a line that isn't a JSON object. */
export function parseLogLine(line: string): LogFields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as LogFields) : undefined
  } catch {
    return undefined
  }
}
