import type { Log, LogLine } from './log.ts'

/**
 * Writes JSON lines with a level and a time. Without a library, because enclave and witness have few dependencies. A line that can't be
 * written
 * is dropped, because a full disk or a closed pipe must not end the process.
 */
export function createLog(write: (line: string) => void, now: () => number): Log {
  const writeLine = (level: string) => (line: LogLine) => {
    try {
      write(`{"level":"${level}","time":"${new Date(now()).toISOString()}",${JSON.stringify(line).slice(1)}\n`)
    } catch {
      // The next line may succeed.
    }
  }
  return { info: writeLine('info'), warn: writeLine('warn'), error: writeLine('error') }
}
