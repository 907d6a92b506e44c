import { parseLogLine } from '@countersign/testing/launcher'

export type HumanLine = {
  level: 'info' | 'warn' | 'error'
  text: string
  /** The fields of the line, `name=value`; may be empty. */
  details: string
}

/** The names of the fields for the sentence, the level and the time. All others are details. */
const HEAD = new Set(['level', 'time', 'msg'])

/** Formats a service's log line, JSON or not, for people. */
export function toHumanLine(line: string): HumanLine {
  const fields = parseLogLine(line)
  if (typeof fields?.msg !== 'string') return { level: 'info', text: line, details: '' }
  const details = Object.entries(fields).filter(([name]) => !HEAD.has(name))
  return {
    level: toLevel(fields.level),
    text: fields.msg,
    details: details.map(([name, value]) => `${name}=${toText(value)}`).join(' '),
  }
}

function toLevel(level: unknown): HumanLine['level'] {
  return level === 'error' || level === 'warn' ? level : 'info'
}

function toText(value: unknown): string {
  return typeof value === 'string' && /^\S+$/.test(value) ? value : JSON.stringify(value)
}
