import { readFileSync } from 'node:fs'
import { parseArguments } from './parseArguments.ts'
import type { Env } from './readEnv.ts'
import { readSettings } from './readSettings.ts'
import { type RunningService, type RunServiceDeps, runService } from './runService.ts'

export type Program = {
  /** The name of the `npm run` script. */
  name: string
  /** What it does, in one or two sentences. */
  about: string
}

export type RunProgramDeps = Omit<RunServiceDeps, 'process'> & {
  /** Default: the current process. */
  process?: NonNullable<RunServiceDeps['process']> & Pick<NodeJS.Process, 'argv' | 'env' | 'stdout' | 'stderr'>
}

/** Runs a service as a program: parses the command line, reads the settings and calls `runService`. */
export async function runProgram(
  { log, process = globalThis.process }: RunProgramDeps,
  program: Program,
  start: (env: Env) => Promise<RunningService>,
): Promise<void> {
  const parsed = parseArguments(process.argv.slice(2), { config: { type: 'string' } })
  if (parsed.kind === 'help') {
    process.stdout.write(toUsage(program))
  } else if (parsed.kind === 'fault') {
    process.stderr.write(`${parsed.fault}\n\n${toUsage(program)}`)
    process.exitCode = 2
  } else {
    const { config: configFile } = parsed.values
    const readFile = (path: string) => readFileSync(path, 'utf8')
    await runService({ log, process }, async () => start(readSettings({ env: process.env, configFile, readFile })))
  }
}

function toUsage({ name, about }: Program): string {
  return `usage: npm run ${name} -- [--config FILE]

${about}
Settings come from the environment. .env.example explains them.
  --config FILE   also reads settings from a file of NAME=VALUE lines; none may be in both; not with NODE_ENV=production
  --help          prints this help

Example: npm run ${name} -- --config .env
Exit codes: 0 stopped, 1 failed, 2 invalid arguments.
`
}
