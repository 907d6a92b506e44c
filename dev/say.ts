import { styleText } from 'node:util'

const COLOURS = {
  oidc: 'blue',
  satellite: 'gray',
  chain: 'yellow',
  enclave: 'magenta',
  coordinator: 'cyan',
  web: 'blueBright',
  dev: 'green',
} as const

/** Who writes: a part of the stack, or the supervisor itself. */
export type Speaker = keyof typeof COLOURS

/** Writes text with the name of its writer before every line. */
export function say(name: Speaker, text: string): void {
  const prefix = styleText(COLOURS[name], name.padEnd(11), { stream: process.stdout })
  for (const line of text.split('\n')) process.stdout.write(`${prefix} ${line}\n`)
}
