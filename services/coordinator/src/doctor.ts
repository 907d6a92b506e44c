import { readFileSync } from 'node:fs'
import { ConfigError, readSettings } from '@countersign/service'
import packageJson from '../package.json' with { type: 'json' }
import type { NamedFinding } from './doctor/check.ts'
import { type Command, parseCommand, USAGE } from './doctor/parseCommand.ts'

const readFile = (path: string) => readFileSync(path, 'utf8')

async function look({ configFile, ...parameters }: Extract<Command, { kind: 'run' }>): Promise<NamedFinding[]> {
  // After the arguments are read: it takes a while to load.
  const [{ examine }, { systemClock }] = await Promise.all([import('./doctor/examine.ts'), import('./system.ts')])
  try {
    const env = readSettings({ env: process.env, configFile, readFile })
    return await examine({ env, clock: systemClock, fetch, readFile, version: packageJson.version }, parameters)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const mend = 'Correct the file; .env.example is a template of it.'
    return error.faults.map((text) => ({ name: 'configuration', state: 'fault', text, mend }))
  }
}

async function run(command: Extract<Command, { kind: 'run' }>): Promise<void> {
  const found = await look(command)
  const { summarize, toJson, toText } = await import('./doctor/report.ts')
  const { state } = summarize(found)
  const code = state === 'fault' || (state === 'warning' && command.isStrict) ? 1 : 0
  // What hangs must not keep the process.
  process.stdout.write(`${command.isJson ? toJson(found) : toText(found)}\n`, () => process.exit(code))
}

const command = parseCommand(process.argv.slice(2))
if (command.kind === 'help') {
  console.log(USAGE)
} else if (command.kind === 'fault') {
  console.error(`${command.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else {
  // Libraries warn here in their own words, which may quote what they were given.
  process.removeAllListeners('warning')
  await run(command)
}
