import { ConfigError, describeFault, readSettings } from '@countersign/service'
import type { NamedFinding } from './check.ts'
import type { ExamineDeps } from './examine.ts'
import { type Command, parseCommand, USAGE } from './parseCommand.ts'

export type DoctorResult = { code: 0 | 1 | 2; stdout: string; stderr: string }

/** The whole program, apart from its process. */
export async function runDoctor(args: readonly string[], deps: ExamineDeps): Promise<DoctorResult> {
  const command = parseCommand(args)
  if (command.kind === 'help') return { code: 0, stdout: USAGE, stderr: '' }
  if (command.kind === 'fault') return { code: 2, stdout: '', stderr: `${command.fault}\n\n${USAGE}` }
  const found = await look(deps, command)
  const { summarize, toJson, toText } = await import('./report.ts')
  const { state } = summarize(found)
  const isWell = state === 'ok' || (state === 'warning' && !command.isStrict)
  return { code: isWell ? 0 : 1, stdout: command.isJson ? toJson(found) : toText(found), stderr: '' }
}

async function look(deps: ExamineDeps, command: Extract<Command, { kind: 'run' }>): Promise<NamedFinding[]> {
  const { configFile, ...parameters } = command
  // After the arguments are read: it takes a while to load.
  const { examine } = await import('./examine.ts')
  try {
    const env = readSettings({ env: deps.env, configFile, readFile: deps.readFile })
    return await examine({ ...deps, env }, parameters)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map((each) => ({
      name: 'configuration',
      state: 'fault',
      text: describeFault(each),
      mend: each.fix,
    }))
  }
}
