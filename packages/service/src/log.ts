/** One log line: a constant sentence in the past tense, and single fields, so that no secret is logged by accident. */
export type LogLine = { msg: string } & Record<string, string | number | boolean | undefined>

/** JSON lines. */
export type Log = {
  info(line: LogLine): void
  warn(line: LogLine): void
  error(line: LogLine): void
}
