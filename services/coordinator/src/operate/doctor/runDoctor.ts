import { ConfigError, describeFault, parseArguments, readSettings } from '@countersign/service'
import { type CheckName, checkNames, checks, type NamedFinding, type State, type Subject } from './check.ts'
import type { ExamineDeps } from './examine.ts'

export type DoctorResult = { code: 0 | 1 | 2; stdout: string; stderr: string }

/** The whole program, apart from its process. */
export async function runDoctor(args: readonly string[], deps: ExamineDeps): Promise<DoctorResult> {
  const command = parseCommand(args)
  if (command.kind === 'help') return { code: 0, stdout: USAGE, stderr: '' }
  if (command.kind === 'fault') return { code: 2, stdout: '', stderr: `${command.fault}\n\n${USAGE}` }
  const found = await look(deps, command)
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

const WIDTH = Math.max(...checkNames.map((name) => name.length)) + 2

const USAGE = `usage: npm run doctor -- [--config FILE] [--worker] [--only NAMES] [--timeout SECONDS] [--strict] [--json]

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

type Command =
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

const WORDS: Record<State, string> = { ok: 'ok', warning: 'warning', fault: 'FAULT', skipped: '' }
const STATE_WIDTH = 9
const NAME_WIDTH = Math.max(...checkNames.map((name) => name.length)) + 2

type Summary = { state: 'ok' | 'warning' | 'fault'; counts: Readonly<Record<State, number>> }

function summarize(found: readonly NamedFinding[]): Summary {
  const count = (state: State) => found.filter((each) => each.state === state).length
  const counts = { ok: count('ok'), warning: count('warning'), fault: count('fault'), skipped: count('skipped') }
  return { state: counts.fault > 0 ? 'fault' : counts.warning > 0 ? 'warning' : 'ok', counts }
}

/** For people: what was looked at, one line each, with the way to mend it below; then what was not, by reason. */
function toText(found: readonly NamedFinding[]): string {
  const looked = found.filter(({ state }) => state !== 'skipped')
  const lines = looked.flatMap(({ name, state, text, mend }) => [
    `${WORDS[state].padEnd(STATE_WIDTH)}${name.padEnd(NAME_WIDTH)}${text}`,
    ...(mend === undefined ? [] : [`${' '.repeat(STATE_WIDTH + NAME_WIDTH)}→ ${mend}`]),
  ])
  const reasons = Map.groupBy(
    found.filter(({ state }) => state === 'skipped'),
    ({ text }) => text,
  )
  const skipped = [...reasons].map(
    ([reason, each]) => `not looked at: ${each.map(({ name }) => name).join(', ')} (${reason})`,
  )
  const { counts } = summarize(found)
  const end = `${toCount(counts.fault, 'fault')}, ${toCount(counts.warning, 'warning')}, ${counts.ok} in order, ${counts.skipped} not looked at.`
  return [...lines, ...(skipped.length === 0 ? [] : ['', ...skipped]), '', end].join('\n').trimStart()
}

function toJson(found: readonly NamedFinding[]): string {
  const { state, counts } = summarize(found)
  return JSON.stringify({ state, counts, checks: found.map(({ name, ...rest }) => ({ name, ...rest })) }, undefined, 2)
}

function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
