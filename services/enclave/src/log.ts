import type { Log, LogLine } from '@countersign/service'

/** JSON lines with a level and a time. Written here and not with pino: the enclave has few dependencies. */
export function createLog(write: (line: string) => void, now: () => number): Log {
  const writeLine = (level: string) => (line: LogLine) =>
    write(`${JSON.stringify({ level, time: new Date(now()).toISOString(), ...line })}\n`)
  return { info: writeLine('info'), warn: writeLine('warn'), error: writeLine('error') }
}
