import type { Log, LogFields } from './ports.ts'

/** JSON lines with a level, a time and a fixed sentence in the past tense. */
export function createLog(write: (line: string) => void, now: () => number): Log {
  const line =
    (level: string) =>
    (msg: string, fields: LogFields = {}) =>
      write(`${JSON.stringify({ level, time: new Date(now()).toISOString(), msg, ...fields })}\n`)
  return { info: line('info'), warn: line('warn'), error: line('error') }
}
