import { parseArguments } from '@countersign/service'
import type { Subject } from './check.ts'
import { type CheckName, checkNames, checks } from './names.ts'

const WIDTH = Math.max(...checkNames.map((name) => name.length)) + 2

export const USAGE = `usage: npm run doctor -- [--config FILE] [--worker] [--only NAMES] [--timeout SECONDS] [--strict] [--json]

Looks at a configuration and all that it names, and says what is wrong and how to mend it. It changes nothing.
Settings come from the environment; .env.example explains each.
  --config FILE       takes settings from a file of NAME=VALUE lines too. Refused with NODE_ENV=production
  --worker            looks at a worker that runs alone, not at a coordinator
  --only NAMES        these checks only, comma-separated, and faults of those that they need
  --timeout SECONDS   for each check, 1 to 120 (default: 10)
  --strict            warnings count as faults
  --json              one JSON object: state, checks of name, state, text and mend
  --help              says this

Checks:
${checkNames.map((name) => `  ${name.padEnd(WIDTH)}${checks[name]}`).join('\n')}

Example: npm run doctor -- --config .env --only configuration,database,schema
Exit codes: 0 no fault, 1 faults, 2 wrong arguments.`

export type Command =
  | { kind: 'help' }
  | { kind: 'fault'; fault: string }
  | {
      kind: 'run'
      configFile: string | undefined
      role: Subject['role']
      only: readonly CheckName[] | undefined
      timeoutMs: number
      isStrict: boolean
      isJson: boolean
    }

const OPTIONS = {
  config: { type: 'string' },
  worker: { type: 'boolean' },
  only: { type: 'string' },
  timeout: { type: 'string' },
  strict: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

export function parseCommand(args: readonly string[]): Command {
  const parsed = parseArguments(args, OPTIONS)
  if (parsed.kind !== 'run') return parsed
  const { config: configFile, worker, only, timeout = '10', strict, json } = parsed.values
  if (!/^\d{1,3}$/.test(timeout) || Number(timeout) < 1 || Number(timeout) > 120) {
    return { kind: 'fault', fault: '--timeout: expected a whole number of seconds from 1 to 120.' }
  }
  const names = only?.split(',').map((name) => name.trim())
  const unknown = names?.find((name) => !checkNames.includes(name as CheckName))
  if (unknown !== undefined) return { kind: 'fault', fault: `--only: there is no check ${JSON.stringify(unknown)}.` }
  return {
    kind: 'run',
    configFile,
    role: worker === true ? 'worker' : 'coordinator',
    only: names as CheckName[] | undefined,
    timeoutMs: 1000 * Number(timeout),
    isStrict: strict === true,
    isJson: json === true,
  }
}
