import { createLog as createJsonLog, type Log, type LogLine } from '@countersign/service'

/** Everything that a line of the log may say. What is not listed is left out, so that no secret gets in by accident. */
const FIELDS = new Set([
  'msg',
  'requestId',
  'method',
  'route',
  'status',
  'code',
  'durationMs',
  'reason',
  'fault',
  'address',
  'mode',
  'configHash',
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
  'path',
  'slug',
  'cid',
  'attempt',
  'nonce',
  'txHash',
  'blockNumber',
  'origin',
  'witness',
  'vkeys',
])

/** JSON lines, with an allow-list of fields. */
export function createLog(write = createTurnWriter(process)): Log {
  const log = createJsonLog(write, Date.now)
  return {
    info: (line) => log.info(pick(line)),
    warn: (line) => log.warn(pick(line)),
    error: (line) => log.error(pick(line)),
  }
}

function pick(line: LogLine): LogLine {
  const picked: LogLine = { msg: line.msg }
  for (const name of Object.keys(line)) if (FIELDS.has(name)) picked[name] = line[name]
  return picked
}

type OutputProcess = Pick<NodeJS.Process, 'once'> & { stdout: Pick<NodeJS.WriteStream, 'write' | 'on'> }

/** One write for all lines of a turn of the event loop, since answers come by batches; the last of them when the process exits. */
export function createTurnWriter(process: OutputProcess): (line: string) => void {
  let lines = ''
  const flush = () => {
    const text = lines
    lines = ''
    if (text !== '') process.stdout.write(text)
  }
  // A reader of the log that has gone must not end the process.
  process.stdout.on('error', () => {})
  process.once('exit', flush)
  return (line) => {
    if (lines === '') setImmediate(flush)
    lines += line
  }
}
