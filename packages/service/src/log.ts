/** One line of a log: a fixed sentence in the past tense, and fields chosen one by one, so that no secret gets in by accident. */
export type LogLine = { msg: string } & Record<string, string | number | boolean | undefined>

/** JSON lines. */
export type Log = {
  info(line: LogLine): void
  warn(line: LogLine): void
  error(line: LogLine): void
}
