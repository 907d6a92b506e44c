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

/** Who writes: a part of the stack, or the supervisor itself. */
export type Speaker = keyof typeof COLOURS

export type Voice = {
  /** What everybody should read, with the name of its writer before every line. */
  say(name: Speaker, text: string): void
  /** The same, for those who asked for all of it. */
  detail(name: Speaker, text: string): void
  /** A line of a service's log. Those below a warning are details, and so are all while it starts: the others are starting too. */
  log(name: Speaker, line: string, state: { isStarting: boolean }): void
  /** The address to open, as what nobody can overlook. */
  shout(text: string): void
}

export type CreateVoiceParameters = {
  isVerbose: boolean
  /** Colours only where it is a terminal that has them, and nobody set `NO_COLOR`. */
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
