import { createLog as createJsonLog, type Log, type LogLine } from '@countersign/service'

/** The allowed fields of a log line. All others are dropped, so that no secret is logged by accident. */
const FIELDS = new Set([
  'msg',
  'requestId',
  'method',
  'route',
  'status',
  'provider',
  'code',
  'durationMs',
  'reason',
  'fault',
  'address',
  'mode',
  'configHash',
  'commitment',
  'bootId',
  'fmspc',
  'ca',
  'count',
  'size',
  'source',
  'signal',
  'url',
  'name',
  'version',
  'hash',
  'lapsesAt',
  'delayMs',
  'requests',
  'enclave',
  'other',
  'path',
  'slug',
  'id',
  'cid',
  'attempt',
  'nonce',
  'txHash',
  'blockNumber',
  'origin',
  'witness',
  'vkeys',
])

/** Writes JSON lines with the allowed fields. Warnings and errors are written immediately, because the process may end next. */
export function createLog({ write, flush }: Output = createTurnWriter(process)): Log {
  const log = createJsonLog(write, Date.now)
  return {
    info: (line) => log.info(pick(line)),
    warn(line) {
      log.warn(pick(line))
      flush()
    },
    error(line) {
      log.error(pick(line))
      flush()
    },
  }
}

function pick(line: LogLine): LogLine {
  if (Object.keys(line).every((name) => FIELDS.has(name))) return line
  const picked: LogLine = { msg: line.msg }
  for (const name of Object.keys(line)) if (FIELDS.has(name)) picked[name] = line[name]
  return picked
}

type Output = { write(line: string): void; flush(): void }
type OutputProcess = Pick<NodeJS.Process, 'once'> & { stdout: Pick<NodeJS.WriteStream, 'write' | 'on'> }

/**
 * Joins all lines of one turn of the event loop into one write, because responses come in batches. Writes the rest when the process exits.
 */
export function createTurnWriter(process: OutputProcess): Output {
  let lines = ''
  const flush = () => {
    const text = lines
    lines = ''
    if (text !== '') process.stdout.write(text)
  }
  // A closed log pipe must not end the process.
  process.stdout.on('error', () => {})
  process.once('exit', flush)
  return {
    write(line) {
      if (lines === '') setImmediate(flush)
      lines += line
    },
    flush,
  }
}
