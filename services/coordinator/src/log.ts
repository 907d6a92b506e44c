import type { Log, LogLine } from '@countersign/service'
import { pino } from 'pino'

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

/** JSON lines through pino, with an allow-list of fields. */
export function createLog(destination?: { write(line: string): void }): Log {
  const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination ?? pino.destination(1))
  const pick = (line: LogLine) => Object.fromEntries(Object.entries(line).filter(([name]) => FIELDS.has(name)))
  return {
    info: (line) => logger.info(pick(line)),
    warn: (line) => logger.warn(pick(line)),
    error: (line) => logger.error(pick(line)),
  }
}
