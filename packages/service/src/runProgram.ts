import { readFileSync } from 'node:fs'
import { parseArguments } from './parseArguments.ts'
import type { Env } from './readEnv.ts'
import { readSettings } from './readSettings.ts'
import { type RunningService, type RunServiceDeps, runService } from './runService.ts'

export type Program = {
  /** As `npm run` knows it. */
  name: string
  /** What it does, in a sentence or two. */
  about: string
}

export type RunProgramDeps = Omit<RunServiceDeps, 'process'> & {
  /** The process that runs it; its own by default. */
  process?: NonNullable<RunServiceDeps['process']> & Pick<NodeJS.Process, 'argv' | 'env' | 'stdout' | 'stderr'>
}

/** A service as a program: reads its command line, then runs with its settings as `runService` does. */
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
Settings come from the environment; .env.example explains each.
  --config FILE   takes settings from a file of NAME=VALUE lines too; none may be in both. Refused with NODE_ENV=production
  --help          says this

Example: npm run ${name} -- --config .env
Exit codes: 0 stopped, 1 could not start or go on, 2 wrong arguments.
`
}
