import { createLog as createJsonLog, type Log, type LogLine } from '@countersign/service'

/** Everything that a line of the log may say. What is not listed is left out, so that no secret gets in by accident. */
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

/** JSON lines, with an allow-list of fields. Warnings and errors are written at once: they may be the last that the process says. */
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

/** One write for all lines of a turn of the event loop, since answers come by batches; the last of them when the process exits. */
export function createTurnWriter(process: OutputProcess): Output {
  let lines = ''
  const flush = () => {
    const text = lines
    lines = ''
    if (text !== '') process.stdout.write(text)
  }
  // A reader of the log that has gone must not end the process.
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
