import { styleText } from 'node:util'
import { toHumanLine } from './humanLine.ts'

const COLOURS = {
  oidc: 'blue',
  satellite: 'gray',
  chain: 'yellow',
  database: 'gray',
  witnesses: 'greenBright',
  enclave: 'magenta',
  coordinator: 'cyan',
  web: 'blueBright',
  docs: 'gray',
  dev: 'green',
} as const

/** The writer: a part of the stack, or the supervisor. */
export type Speaker = keyof typeof COLOURS

export type Voice = {
  /** A line for every user, with the name of its writer. */
  say(name: Speaker, text: string): void
  /** A line for users of --verbose. */
  detail(name: Speaker, text: string): void
  /** A service's log line. Lines below a warning count as details, and so does every line while the service starts. */
  log(name: Speaker, line: string, state: { isStarting: boolean }): void
  /** The address to open, highlighted. */
  shout(text: string): void
}

export type CreateVoiceParameters = {
  isVerbose: boolean
  /** Colours only at a terminal that supports them, unless `NO_COLOR` is set. */
  output: NodeJS.WritableStream
}

const LEVELS = { info: [], warn: ['yellow'], error: ['bold', 'red'] } as const

/** Writes for the person at the terminal. */
export function createVoice({ isVerbose, output }: CreateVoiceParameters): Voice {
  const style = (format: Parameters<typeof styleText>[0], text: string) => styleText(format, text, { stream: output })
  function say(name: Speaker, text: string) {
    const prefix = style(COLOURS[name], name.padEnd(11))
    for (const line of text.split('\n')) output.write(`${prefix} ${line}\n`)
  }
  function detail(name: Speaker, text: string) {
    if (isVerbose) say(name, text)
  }
  return {
    say,
    detail,
    log(name, line, { isStarting }) {
      const { level, text, details } = toHumanLine(line)
      const isLoud = level !== 'info' && !isStarting
      const words = [style([...LEVELS[level]], text), ...(details === '' ? [] : [style('dim', details)])].join('  ')
      if (isLoud) say(name, words)
      else detail(name, words)
    },
    shout(text) {
      output.write(`\n    ${style(['bold', 'inverse', 'greenBright'], ` ${text} `)}\n\n`)
    },
  }
}
