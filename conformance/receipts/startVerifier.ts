import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { toPrintable } from '@countersign/verify'
import type { Answer, Outcome, Request } from './protocol.ts'

/** The TypeScript verifier. */
export const ownCommand = [process.execPath, '-C', 'source', join(import.meta.dirname, 'typescript.ts')]

/** The Python verifier, with Debian's Python and packages. */
export const pythonCommand = [
  '/usr/bin/env',
  `PYTHONPATH=${join(import.meta.dirname, '../../verifiers/python')}`,
  '/usr/bin/python3',
  '-m',
  'countersign_verify',
  '--lines',
]

/** Thrown instead of an answer: the command crashed, was too slow, or answered with something else. */
export class AnswerError extends Error {
  override name = 'AnswerError'
}

export type Verifier = {
  /** Answers come in the order of the requests, so several requests can wait. */
  check(request: Request): Promise<Outcome>
  close(): void
}

type Waiting = { request: Request; resolve: (outcome: Outcome) => void; reject: (error: AnswerError) => void }

/** At most this many requests are in the command's input, so that a pipe can't fill up. */
const IN_FLIGHT = 4

/** The longest answer in characters, so that a line without an end doesn't fill the memory. */
const MAX_LINE = 1_048_576

/**
 * Starts a command that speaks the line protocol. After a crash, a timeout or an invalid answer, the request in question fails, and the
 * command starts again for the others. Fails all requests if the command doesn't exist.
 */
export function startVerifier(command: readonly string[], { timeoutMs = 60_000 } = {}): Verifier {
  const queue: Waiting[] = []
  let sent = 0
  let child: ChildProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let errors = ''

  function start() {
    const [file = '', ...args] = command
    // In its own process group, so that Control-C lets the caller finish. It ends with its input.
    const started = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    child = started
    sent = 0
    errors = ''
    started.stderr.on('data', (chunk) => {
      errors = `${errors}${chunk}`.slice(-2_000)
    })
    // A write to a command that just ended. Its end is handled below.
    started.stdin.on('error', () => {})
    started.on('error', (error) => fail(started, `could not start: ${error.message}`, true))
    let rest = ''
    started.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      if (child !== started) return
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (child === started) receive(started, line)
      if (rest.length > MAX_LINE) fail(started, `answered with a line of more than ${MAX_LINE} characters`)
    })
    started.on('close', (code, signal) => {
      const cause = errors.trim() === '' ? '' : `: ${errors.trim().split('\n').at(-1)}`
      fail(started, `ended with ${signal ?? `exit code ${code}`} before its answer${cause}`)
    })
  }

  function receive(from: ChildProcess, line: string) {
    const [first] = queue
    if (first === undefined || sent === 0) return fail(from, `wrote a line without a request: ${shorten(line)}`)
    const answer = parseAnswer(line)
    if (typeof answer === 'string') return fail(from, `${answer}: ${shorten(line)}`)
    const { id, ...outcome } = answer
    if (id !== first.request.id) return fail(from, `answered request ${id} instead of ${first.request.id}`)
    queue.shift()
    sent -= 1
    first.resolve(outcome)
    clearTimeout(timer)
    timer = undefined
    send()
  }

  /** Fails the first request, and starts the command again for the others. */
  function fail(from: ChildProcess, reason: string, isFinal = false) {
    if (child !== from) return
    child = undefined
    clearTimeout(timer)
    timer = undefined
    from.kill('SIGKILL')
    const failed = isFinal ? queue.splice(0) : queue.splice(0, 1)
    // The reason quotes the command, which could forge lines of the terminal.
    for (const { reject } of failed) reject(new AnswerError(toPrintable(reason)))
    if (queue.length > 0) send()
  }

  function send() {
    if (child === undefined && queue.length > 0) start()
    for (; sent < Math.min(queue.length, IN_FLIGHT); sent++) {
      child?.stdin?.write(`${JSON.stringify(queue[sent]?.request)}\n`)
    }
    const current = child
    if (sent > 0 && timer === undefined && current !== undefined) {
      timer = setTimeout(() => fail(current, `no answer within ${timeoutMs / 1000} s`), timeoutMs)
    }
  }

  return {
    check: (request) =>
      new Promise((resolve, reject) => {
        queue.push({ request, resolve, reject })
        send()
      }),
    close() {
      const ending = child
      child = undefined
      clearTimeout(timer)
      ending?.stdin?.end()
    },
  }
}

const STATUSES = ['pass', 'fail', 'skip', 'unchecked']

/** The answer, or what is wrong with it. */
function parseAnswer(line: string): Answer | string {
  let answer: Record<string, unknown>
  try {
    answer = JSON.parse(line)
  } catch {
    return 'answered with a line that is not JSON'
  }
  if (typeof answer !== 'object' || answer === null || typeof answer.id !== 'number') return 'answered without an id'
  const { error, verdict, steps, unchecked = [] } = answer
  if (typeof error === 'string') return answer as Answer
  if (typeof verdict !== 'string' || typeof steps !== 'object' || steps === null)
    return 'answered without a verdict or steps'
  if (!Object.values(steps).every((status) => STATUSES.includes(status))) return 'answered with an unknown status'
  if (!Array.isArray(unchecked)) return 'answered with a list of unchecked steps that is not a list'
  // Both ways of naming them are accepted.
  return { ...answer, steps: { ...steps, ...Object.fromEntries(unchecked.map((id) => [id, 'unchecked'])) } } as Answer
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)} …` : text
}
