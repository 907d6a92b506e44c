import { ConfigError, describeFault, parseArguments, readSettings } from '@countersign/service'
import { type CheckName, checkNames, checks, type NamedFinding, type State, type Subject } from './check.ts'
import type { DiagnoseDeps } from './diagnose.ts'

export type DoctorResult = { code: 0 | 1 | 2; stdout: string; stderr: string }

/** Runs the program without its process. */
export async function runDoctor(args: readonly string[], deps: DiagnoseDeps): Promise<DoctorResult> {
  const command = parseCommand(args)
  if (command.kind === 'help') return { code: 0, stdout: USAGE, stderr: '' }
  if (command.kind === 'fault') return { code: 2, stdout: '', stderr: `${command.fault}\n\n${USAGE}` }
  const found = await diagnoseSettings(deps, command)
  const { state } = summarize(found)
  const isWell = state === 'ok' || (state === 'warning' && !command.isStrict)
  return { code: isWell ? 0 : 1, stdout: command.isJson ? toJson(found) : toText(found), stderr: '' }
}

async function diagnoseSettings(
  deps: DiagnoseDeps,
  command: Extract<Command, { kind: 'run' }>,
): Promise<NamedFinding[]> {
  const { configFile, ...parameters } = command
  // Loaded after the arguments are parsed, because loading takes a while.
  const { diagnose } = await import('./diagnose.ts')
  try {
    const env = readSettings({ env: deps.env, configFile, readFile: deps.readFile })
    return await diagnose({ ...deps, env }, parameters)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map((each) => ({
      name: 'configuration',
      state: 'fault',
      text: describeFault(each),
      fix: each.fix,
    }))
  }
}

const WIDTH = Math.max(...checkNames.map((name) => name.length)) + 2

const USAGE = `usage: npm run doctor -- [--config FILE] [--worker] [--only NAMES] [--timeout SECONDS] [--strict] [--json]

Checks a configuration and everything that it names, and says how to fix what is wrong. It changes nothing.
Settings come from the environment. .env.example explains them.
  --config FILE       also reads settings from a file of NAME=VALUE lines; not with NODE_ENV=production
  --worker            checks a separate worker instead of a coordinator
  --only NAMES        runs only these checks, comma-separated; also shows faults of checks that they need
  --timeout SECONDS   time limit of each check, 1 to 120 (default: 10)
  --strict            treats warnings as faults
  --json              prints a JSON object: state, counts, and checks with name, state, text and mend (the fix)
  --help              prints this help

Checks:
${checkNames.map((name) => `  ${name.padEnd(WIDTH)}${checks[name]}`).join('\n')}

Example: npm run doctor -- --config .env --only configuration,database,schema
Exit codes: 0 no faults, 1 faults, 2 invalid arguments.`

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
  if (unknown !== undefined) return { kind: 'fault', fault: `--only: unknown check ${JSON.stringify(unknown)}.` }
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

/** One line per finding with its fix below, then the skipped checks by reason. */
function toText(found: readonly NamedFinding[]): string {
  const checked = found.filter(({ state }) => state !== 'skipped')
  const lines = checked.flatMap(({ name, state, text, fix }) => [
    `${WORDS[state].padEnd(STATE_WIDTH)}${name.padEnd(NAME_WIDTH)}${text}`,
    ...(fix === undefined ? [] : [`${' '.repeat(STATE_WIDTH + NAME_WIDTH)}→ ${fix}`]),
  ])
  const reasons = Map.groupBy(
    found.filter(({ state }) => state === 'skipped'),
    ({ text }) => text,
  )
  const skipped = [...reasons].map(
    ([reason, each]) => `skipped: ${each.map(({ name }) => name).join(', ')} (${reason})`,
  )
  const { counts } = summarize(found)
  const end = `${toCount(counts.fault, 'fault')}, ${toCount(counts.warning, 'warning')}, ${counts.ok} ok, ${counts.skipped} skipped.`
  return [...lines, ...(skipped.length === 0 ? [] : ['', ...skipped]), '', end].join('\n').trimStart()
}

function toJson(found: readonly NamedFinding[]): string {
  const { state, counts } = summarize(found)
  // Scripts read `mend`, so the output keeps this name.
  const checks = found.map(({ name, fix: mend, ...rest }) => ({ name, ...rest, mend }))
  return JSON.stringify({ state, counts, checks }, undefined, 2)
}

function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
