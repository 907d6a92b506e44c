import type { Log, LogLine } from './log.ts'

/**
 * JSON lines with a level and a time. Written here and not with a library: enclave and witness have few dependencies. A line that cannot be
 * written is lost: a full disk, or a reader of the log that has gone, must not end the process.
 */
export function createLog(write: (line: string) => void, now: () => number): Log {
  const writeLine = (level: string) => (line: LogLine) => {
    try {
      write(`{"level":"${level}","time":"${new Date(now()).toISOString()}",${JSON.stringify(line).slice(1)}\n`)
    } catch {
      // The next may get through.
    }
  }
  return { info: writeLine('info'), warn: writeLine('warn'), error: writeLine('error') }
}
